"""From files on disk to batches: datasets, samplers, transforms, the loaders. Names load when first used."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
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

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
