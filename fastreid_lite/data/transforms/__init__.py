"""What may be done to an image between the file and the batch. One idea a file; names load when first used."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "Transform": "draws",
    "sample_seed": "draws",
    "Resize": "resize",
    "CenterCrop": "crop",
    "RandomResizedCrop": "crop",
    "PadAndCrop": "pad",
    "RandomHorizontalFlip": "flip",
    "ColorJitter": "color",
    "RandomAffine": "affine",
    "RandomErasing": "erasing",
    "ForeignTransform": "foreign",
    "RandomApply": "apply",
    "AutoAugment": "policies",
    "AugMix": "policies",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
