"""What may be done to an image between the file and the batch. One idea a file; names load when first used."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
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
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
