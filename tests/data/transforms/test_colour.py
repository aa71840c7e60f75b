"""Jitter and erasing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fastreid_lite.data.transforms import ColorJitter, RandomApply, RandomErasing

IMAGE = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 40, 20), dtype=np.uint8))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_jitter_changes_as_many_images_as_asked_and_keeps_their_shape() -> None:
    jitter = ColorJitter(0.5, brightness=0.15, contrast=0.15, saturation=0.1, hue=0.1)
    results = [jitter(IMAGE, generator(seed)) for seed in range(200)]
    assert all(result.shape == IMAGE.shape and result.dtype == torch.uint8 for result in results)
    assert 70 < sum(torch.equal(result, IMAGE) for result in results) < 130


def test_brightness_alone_is_a_factor_within_its_range() -> None:
    grey = torch.full((3, 4, 4), 100, dtype=torch.uint8)
    values = {int(ColorJitter(1.0, brightness=0.2)(grey, generator(seed))[0, 0, 0]) for seed in range(300)}
    assert min(values) in (79, 80, 81) and max(values) in (119, 120) and len(values) > 30


def test_the_operations_of_jitter_come_in_different_orders() -> None:
    jitter = ColorJitter(1.0, brightness=0.5, contrast=0.5)
    orders = set()
    for seed in range(50):
        calls: list[str] = []
        jitter._steps = [(recorder(name, calls), (0.5, 1.5)) for name in "abcd"]  # type: ignore[misc]
        jitter(IMAGE, generator(seed))
        orders.add("".join(calls))
    assert len(orders) > 15 and all(sorted(order) == list("abcd") for order in orders)


def recorder(name: str, calls: list[str]) -> object:
    def record(image: torch.Tensor, value: float) -> torch.Tensor:
        calls.append(name)
        return image

    return record


def test_erasing_paints_one_rectangle_of_the_rounded_colour() -> None:
    erase = RandomErasing(1.0, value=(123.675, 116.28, 103.53))
    assert erase.value == (124, 116, 104)
    before = IMAGE.clone()
    black = torch.zeros(3, 400, 200, dtype=torch.uint8)
    areas, ratios = [], []
    for seed in range(300):
        erased = erase(black, generator(seed))
        rows, columns = (erased[0] == 124).nonzero(as_tuple=True)
        height, width = int(rows.max() - rows.min()) + 1, int(columns.max() - columns.min()) + 1
        assert len(rows) == height * width
        assert erased[:, rows[0], columns[0]].tolist() == [124, 116, 104]
        areas.append(height * width / black[0].numel())
        ratios.append(height / width)
    assert 0.019 < min(areas) < 0.04 and 0.27 < max(areas) < 0.331
    assert 0.29 < min(ratios) < 0.4 and 2.6 < max(ratios) < 3.4
    assert abs(float(np.mean(np.log(ratios)))) < 0.25 * math.log(3.3)
    erase(IMAGE, generator(0))
    assert torch.equal(IMAGE, before)


def test_erasing_happens_as_often_as_asked() -> None:
    changed = sum(not torch.equal(RandomErasing(0.3)(IMAGE, generator(seed)), IMAGE) for seed in range(500))
    assert 110 < changed < 190


def test_an_image_in_which_no_rectangle_fits_is_left_alone() -> None:
    tiny = torch.zeros(3, 1, 1, dtype=torch.uint8)
    assert torch.equal(RandomErasing(1.0)(tiny, generator(0)), tiny)


def test_random_apply_applies_as_often_as_asked() -> None:
    invert = RandomApply(lambda image, generator: 255 - image, 0.4)
    changed = sum(not torch.equal(invert(IMAGE, generator(seed)), IMAGE) for seed in range(500))
    assert 150 < changed < 250


def test_impossible_settings_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"prob \(INPUT.CJ.PROB\) is -0.1"):
        ColorJitter(-0.1)
    with pytest.raises(ValueError, match=r"contrast is -1.*INPUT.CJ.CONTRAST"):
        ColorJitter(contrast=-1)
    with pytest.raises(ValueError, match=r"hue is 0.7.*INPUT.CJ.HUE"):
        ColorJitter(hue=0.7)
    with pytest.raises(ValueError, match=r"value is \[1, 2\].*INPUT.REA.VALUE"):
        RandomErasing(value=(1, 2))
    with pytest.raises(ValueError, match="value is"):
        RandomErasing(value=(1, 2, 300))
    with pytest.raises(ValueError, match=r"prob \(INPUT.REA.PROB\)"):
        RandomErasing(2)
    with pytest.raises(ValueError, match="prob is 3"):
        RandomApply(lambda image, generator: image, 3)
