"""Which images an epoch uses, and in which order. Names load when first used."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "EpochSampler": "base",
    "TrainingSampler": "training",
    "NaiveIdentitySampler": "naive",
    "BalancedIdentitySampler": "balanced",
    "SAMPLER_REGISTRY": "build",
    "build_sampler": "build",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
