from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.transforms import RandomHorizontalFlip


class Node(SimpleNamespace):
    """A config node as far as this package reads one: by attribute and by key."""

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


@pytest.fixture
def config() -> Callable[..., Any]:
    """INPUT with fast-reid's defaults; ``config(FLIP__ENABLED=True)`` changes a key."""

    def make(**changes: Any) -> Any:
        inputs = Node(
            SIZE_TRAIN=[256, 128],
            SIZE_TEST=[256, 128],
            AUTOAUG=Node(ENABLED=False, PROB=0.0),
            CROP=Node(ENABLED=False, SIZE=[224, 224], SCALE=[0.16, 1], RATIO=[3 / 4, 4 / 3]),
            PADDING=Node(ENABLED=False, MODE="constant", SIZE=10),
            FLIP=Node(ENABLED=False, PROB=0.5),
            CJ=Node(ENABLED=False, PROB=0.5, BRIGHTNESS=0.15, CONTRAST=0.15, SATURATION=0.1, HUE=0.1),
            AFFINE=Node(ENABLED=False),
            AUGMIX=Node(ENABLED=False, PROB=0.0),
            REA=Node(ENABLED=False, PROB=0.5, VALUE=[123.675, 116.28, 103.53]),
            RPT=Node(ENABLED=False, PROB=0.5),
        )
        for key, value in changes.items():
            section, _, name = key.rpartition("__")
            setattr(inputs[section] if section else inputs, name, value)
        return SimpleNamespace(INPUT=inputs)

    return make


def names(preprocessor: Preprocessor) -> list[str]:
    return [type(getattr(step, "transform", step)).__name__ for step in preprocessor.train_transforms]


def image(height: int = 40, width: int = 30) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, height, width), dtype=np.uint8))


def test_the_transforms_stand_in_fast_reids_order(config: Callable[..., Any]) -> None:
    switches = {
        f"{key}__ENABLED": True for key in ("AUTOAUG", "CROP", "PADDING", "FLIP", "CJ", "AFFINE", "AUGMIX", "REA")
    }
    preprocessor = Preprocessor.from_config(config(**switches, AUTOAUG__PROB=1.0, AUGMIX__PROB=1.0))
    assert names(preprocessor) == [
        "AutoAugment",
        "Resize",
        "RandomResizedCrop",
        "PadAndCrop",
        "RandomHorizontalFlip",
        "ColorJitter",
        "RandomAffine",
        "AugMix",
        "RandomErasing",
    ]
    result = preprocessor.train(image(), torch.Generator().manual_seed(0))
    assert result.shape == (3, 224, 224) and result.dtype == torch.uint8
    assert preprocessor.test(image()).shape == (3, 224, 224)


def test_by_default_images_are_only_resized(config: Callable[..., Any]) -> None:
    preprocessor = Preprocessor.from_config(config(SIZE_TRAIN=[64, 32]))
    assert names(preprocessor) == ["Resize"]
    assert preprocessor.train(image(), torch.Generator()).shape == (3, 64, 32)
    assert preprocessor.test(image()).shape == (3, 256, 128)


def test_the_test_transforms_give_the_golden_pipeline(config: Callable[..., Any], shared: Path) -> None:
    golden = np.load(shared / "golden" / "transforms.npz")
    for recipe, size in (("Base-bagtricks", [256, 128]), ("Base-SBS", [384, 128])):
        preprocessor = Preprocessor.from_config(config(SIZE_TEST=size))
        for name in ("smooth_128x64", "noise_20x9", "large_noise_400x150"):
            read = torch.from_numpy(golden[f"{name}/image_hwc"]).permute(2, 0, 1)
            assert np.array_equal(preprocessor.test(read).numpy(), golden[f"{name}/{recipe}_chw"])


def test_the_shorter_side_or_no_size_goes_with_a_crop(config: Callable[..., Any]) -> None:
    preprocessor = Preprocessor.from_config(
        config(SIZE_TRAIN=[0], SIZE_TEST=[32], CROP__ENABLED=True, CROP__SIZE=[16, 16])
    )
    assert names(preprocessor) == ["RandomResizedCrop"]
    assert preprocessor.train(image(), torch.Generator()).shape == (3, 16, 16)
    assert preprocessor.test(image()).shape == (3, 16, 16)


def test_it_can_be_made_without_a_config_and_says_what_it_does() -> None:
    preprocessor = Preprocessor((8, 4), None, after_resize=[RandomHorizontalFlip(1.0)], crop_test=(6, 6))
    assert preprocessor.test(image()).shape == (3, 6, 6)
    expected = Preprocessor((8, 4), None).train(image(), torch.Generator()).flip(-1)
    assert torch.equal(preprocessor.train(image(), torch.Generator()), expected)
    assert "RandomHorizontalFlip(prob=1.0)" in repr(preprocessor) and "CenterCrop" in repr(preprocessor)


def test_what_cannot_be_done_is_refused_by_its_key(config: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"INPUT.RPT.ENABLED is True.*pool of earlier images"):
        Preprocessor.from_config(config(RPT__ENABLED=True))
    with pytest.raises(ValueError, match=r"INPUT.SIZE_TRAIN is \[256\].*INPUT.CROP.ENABLED"):
        Preprocessor.from_config(config(SIZE_TRAIN=[256]))
    with pytest.raises(ValueError, match=r"INPUT.SIZE_TEST is \[1, 2, 3\]"):
        Preprocessor.from_config(config(SIZE_TEST=[1, 2, 3]))
    with pytest.raises(ValueError, match=r"INPUT.SIZE_TEST is \[256, -1\]"):
        Preprocessor.from_config(config(SIZE_TEST=[256, -1]))
    with pytest.raises(ValueError, match=r"INPUT.CROP.SIZE is \[0, 224\]"):
        Preprocessor.from_config(config(CROP__ENABLED=True, CROP__SIZE=[0, 224]))
