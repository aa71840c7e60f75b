"""Crops, shifts, flips and turns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from fastreid_lite.data.transforms import CenterCrop, PadAndCrop, RandomAffine, RandomHorizontalFlip, RandomResizedCrop

IMAGE = torch.from_numpy(np.random.default_rng(0).integers(1, 256, (3, 12, 8), dtype=np.uint8))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_flip_mirrors_left_and_right_as_often_as_asked() -> None:
    flip = RandomHorizontalFlip(0.25)
    results = Counter(
        "mirrored" if torch.equal(image, IMAGE.flip(-1)) else "same" if torch.equal(image, IMAGE) else "other"
        for image in (flip(IMAGE, generator(seed)) for seed in range(2000))
    )
    assert set(results) == {"mirrored", "same"}
    assert 420 < results["mirrored"] < 580
    assert torch.equal(RandomHorizontalFlip(0.0)(IMAGE, generator(0)), IMAGE)
    assert torch.equal(RandomHorizontalFlip(1.0)(IMAGE, generator(0)), IMAGE.flip(-1))


def padded(mode: str) -> np.ndarray:
    if mode == "constant":
        return np.pad(IMAGE.numpy(), ((0, 0), (3, 3), (3, 3)))
    return np.pad(IMAGE.numpy(), ((0, 0), (3, 3), (3, 3)), mode=mode)  # type: ignore[call-overload]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("layout", ["first", "last"])
def test_padding_and_cropping_gives_every_window_of_the_padded_image_and_no_other(mode: str, layout: str) -> None:
    image = IMAGE if layout == "first" else IMAGE.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    large = padded(mode)
    windows = {large[:, top : top + 12, left : left + 8].tobytes() for top in range(7) for left in range(7)}
    crop = PadAndCrop(3, mode)
    assert {crop(image, generator(seed)).numpy().tobytes() for seed in range(1500)} == windows


def test_padding_wider_than_the_image_is_black_at_the_far_places() -> None:
    results = [PadAndCrop(20)(IMAGE, generator(seed)) for seed in range(50)]
    assert all(result.shape == IMAGE.shape for result in results)
    assert any(not result.any() for result in results)


def test_a_center_crop_keeps_the_middle_and_fills_with_black() -> None:
    assert torch.equal(CenterCrop((6, 4))(IMAGE), IMAGE[:, 3:9, 2:6])
    wide = CenterCrop((6, 10))(IMAGE)
    assert torch.equal(wide[:, :, 1:9], IMAGE[:, 3:9]) and not wide[:, :, [0, 9]].any()


def test_a_random_resized_crop_keeps_to_its_areas_and_ratios() -> None:
    image = torch.zeros(3, 200, 100, dtype=torch.uint8)
    crop = RandomResizedCrop((20, 10), scale=(0.2, 0.6), ratio=(0.5, 2.0))
    areas, ratios = [], []
    for seed in range(300):
        drawn = torch.rand(40, generator=generator(seed), dtype=torch.float64).tolist()
        top, left, height, width = crop._window(image, drawn)
        assert 0 <= top <= 200 - height and 0 <= left <= 100 - width
        areas.append(height * width / 20000)
        ratios.append(width / height)
        assert crop(image, generator(seed)).shape == (3, 20, 10)
    assert 0.19 < min(areas) < 0.25 and 0.4 < max(areas) < 0.61
    assert min(ratios) > 0.49 and max(ratios) < 2.05


def test_a_random_resized_crop_that_cannot_fit_takes_the_largest_middle_part() -> None:
    crop = RandomResizedCrop((4, 4), scale=(1.0, 1.0), ratio=(3.0, 3.0))
    window = crop._window(torch.zeros(3, 12, 8), [0.5] * 40)
    assert window == (4, 0, 3, 8)


def test_an_affine_map_turns_about_the_middle_and_fills_with_black() -> None:
    turned = RandomAffine(degrees=45)(torch.full((3, 31, 31), 255, dtype=torch.uint8), generator(3))
    assert turned.shape == (3, 31, 31) and turned.dtype == torch.uint8
    assert (turned[:, 15, 15] == 255).all() and not turned[:, [0, 0, 30, 30], [0, 30, 0, 30]].all()
    still = RandomAffine(degrees=0, scale=(1.0, 1.0), shear=0)
    assert torch.equal(still(IMAGE, generator(0)), IMAGE)


def test_impossible_settings_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"prob \(INPUT.FLIP.PROB\) is 1.5, expected a probability"):
        RandomHorizontalFlip(1.5)
    with pytest.raises(ValueError, match=r"padding is -1.*INPUT.PADDING.SIZE"):
        PadAndCrop(-1)
    with pytest.raises(ValueError, match=r"unknown padding mode 'mirror' \(INPUT.PADDING.MODE\).*reflect"):
        PadAndCrop(3, "mirror")
    with pytest.raises(ValueError, match="scale is"):
        RandomResizedCrop((4, 4), scale=(0.5, 2.0))
    with pytest.raises(ValueError, match="ratio is"):
        RandomResizedCrop((4, 4), ratio=(2.0, 1.0))
    with pytest.raises(ValueError, match="degrees is -1"):
        RandomAffine(degrees=-1)
