"""Models: a backbone makes a map, a head makes a feature of it, losses judge it, a meta architecture joins the three.

Names are imported on first use, so that importing this package alone imports no torch.
"""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "BACKBONE_REGISTRY": "backbones.build",
    "CLASSIFIER_REGISTRY": "layers.classifiers",
    "HEADS_REGISTRY": "heads.build",
    "LOSS_REGISTRY": "losses.build",
    "META_ARCH_REGISTRY": "meta_arch.build",
    "POOLING_REGISTRY": "layers.pooling",
    "Baseline": "meta_arch.baseline",
    "EmbeddingHead": "heads.embedding_head",
    "build_backbone": "backbones.build",
    "build_heads": "heads.build",
    "build_losses": "losses.build",
    "build_model": "meta_arch.build",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
