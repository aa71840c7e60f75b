"""A head from a config."""

from __future__ import annotations

from typing import Any

from torch import nn

from fastreid_lite.modeling.heads.embedding_head import EmbeddingHead
from fastreid_lite.modeling.heads.osnet_head import OSNetHead
from fastreid_lite.modeling.registries import HEADS_REGISTRY, construct

__all__ = ["HEADS_REGISTRY", "EmbeddingHead", "OSNetHead", "build_heads"]


def build_heads(cfg: Any, feat_dim: int) -> nn.Module:
    """The head that MODEL.HEADS.NAME names, for maps of ``feat_dim`` channels.

    Raises:
        KeyError: no such head, pooling layer, norm or classifier layer.
        ValueError: a setting of the head is not one that it knows.
    """
    heads: nn.Module = construct(HEADS_REGISTRY, cfg.MODEL.HEADS.NAME, cfg, feat_dim)
    return heads
