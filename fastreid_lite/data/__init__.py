"""From files on disk to batches: datasets, samplers, transforms, the loaders. Names load when first used."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "Samples": "samples",
    "ReIDData": "samples",
    "read_image": "images",
    "ImageReadError": "images",
    "Preprocessor": "preprocess",
    "TrainLoader": "loader",
    "TestLoader": "loader",
    "build_train_loader": "build",
    "build_test_loader": "build",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
