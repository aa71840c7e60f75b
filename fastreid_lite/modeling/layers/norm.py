"""Norm layers by name (MODEL.BACKBONE.NORM, MODEL.HEADS.NORM)."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torchvision.ops import FrozenBatchNorm2d

from fastreid_lite.utils.registry import lookup

_GROUPS = 32


def _group_norm(channels: int) -> nn.Module:
    if channels % _GROUPS != 0:
        raise ValueError(f"norm 'GN' has {_GROUPS} groups and needs a multiple of {_GROUPS} channels, got {channels}")
    return nn.GroupNorm(_GROUPS, channels)


_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "BN": nn.BatchNorm2d,
    "syncBN": nn.SyncBatchNorm,
    "FrozenBN": FrozenBatchNorm2d,
    "GN": _group_norm,
}


def get_norm(name: str, channels: int, *, bias_freeze: bool = False) -> nn.Module:
    """A norm layer over ``channels`` channels of (B, C, h, w).

    Args:
        name: "BN"; "syncBN", batch norm whose statistics are those of all processes (devices only, where there are
            several processes; a plain batch norm elsewhere); "FrozenBN", batch norm with fixed statistics and scale;
            "GN", 32 groups.
        channels: number of channels.
        bias_freeze: the bias exists and stays at 0, as in a BNNeck.

    Raises:
        KeyError: ``name`` is not one of these.
        ValueError: "GN" and ``channels`` is not a multiple of 32.
    """
    norm: nn.Module = lookup(_NORMS, name, "norm", "MODEL.BACKBONE.NORM, MODEL.HEADS.NORM")(channels)
    if bias_freeze and isinstance(norm.bias, nn.Parameter):
        norm.bias.requires_grad_(False)
    return norm
