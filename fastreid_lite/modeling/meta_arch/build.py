"""A whole model from a config."""

from __future__ import annotations

from typing import Any

from torch import nn

from fastreid_lite.modeling.meta_arch.baseline import Baseline
from fastreid_lite.modeling.registries import META_ARCH_REGISTRY, construct

__all__ = ["META_ARCH_REGISTRY", "Baseline", "build_model"]


def build_model(cfg: Any) -> nn.Module:
    """The model that MODEL.META_ARCHITECTURE names, on the CPU, in training mode.

    Raises:
        KeyError, ValueError, FileNotFoundError: a setting under MODEL names nothing, is out of range, or names a file
            that is not there; the message says which.
    """
    model: nn.Module = construct(META_ARCH_REGISTRY, cfg.MODEL.META_ARCHITECTURE, cfg)
    return model
