"""A backbone from a config."""

from __future__ import annotations

from typing import Any

from torch import nn

from fastreid_lite.modeling.backbones.osnet import build_osnet_backbone
from fastreid_lite.modeling.backbones.resnet import build_resnet_backbone
from fastreid_lite.modeling.backbones.timm_network import build_timm_backbone
from fastreid_lite.modeling.registries import BACKBONE_REGISTRY

__all__ = ["BACKBONE_REGISTRY", "build_backbone", "build_osnet_backbone", "build_resnet_backbone"]

TIMM_PREFIX = "timm/"


def build_backbone(cfg: Any) -> nn.Module:
    """The backbone that MODEL.BACKBONE.NAME names: an entry of the registry, or "timm/<any network of timm>".

    Returns:
        A module from (B, 3, H, W) to (B, C, h, w) whose ``feat_dim`` is C; MODEL.BACKBONE.FEAT_DIM is not needed.

    Raises:
        KeyError: no such backbone.
        TypeError: an entry of the registry gave a backbone without ``feat_dim``.
    """
    name = cfg.MODEL.BACKBONE.NAME
    if name.startswith(TIMM_PREFIX):
        return build_timm_backbone(cfg, name.removeprefix(TIMM_PREFIX))
    if name not in BACKBONE_REGISTRY:
        raise KeyError(f"{BACKBONE_REGISTRY.unknown(name)}, and any network of timm as 'timm/NAME'")
    backbone: nn.Module = BACKBONE_REGISTRY.get(name)(cfg)
    if not isinstance(getattr(backbone, "feat_dim", None), int):
        raise TypeError(
            f"the backbone {name!r} (MODEL.BACKBONE.NAME) has no integer feat_dim, its number of channels; add it"
        )
    return backbone
