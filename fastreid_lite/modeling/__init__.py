"""Models: a backbone makes a map, a head makes a feature of it, losses judge it, a meta architecture joins the three.

Names are imported on first use, so that importing this package alone imports no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The registries come from the modules that also import the entries of the library, so a registry seen here is full.
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

__all__ = sorted(_SUBMODULES)


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SUBMODULES[name]}"), name)
