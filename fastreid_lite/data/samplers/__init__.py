"""Which images an epoch uses, and in which order. Names load when first used."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "EpochSampler": "base",
    "TrainingSampler": "training",
    "NaiveIdentitySampler": "naive",
    "BalancedIdentitySampler": "balanced",
    "SAMPLER_REGISTRY": "build",
    "build_sampler": "build",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
