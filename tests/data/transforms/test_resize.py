from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fastreid_lite.data.transforms import Resize


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("source", [(128, 64), (20, 9), (400, 150), (1, 1), (256, 64), (300, 128)])
@pytest.mark.parametrize("layout", ["channels last", "channels first", "a view"])
def test_resizing_equals_pillows_bicubic_bit_for_bit(source: tuple[int, int], layout: str) -> None:
    rows = noise(*source)
    image = torch.from_numpy(rows).permute(2, 0, 1)
    if layout == "channels first":
        image = image.contiguous()
    if layout == "a view":
        large = torch.zeros(3, source[0] + 2, source[1] + 3, dtype=torch.uint8)
        large[:, 1:-1, 2:-1] = image
        image = large[:, 1:-1, 2:-1]
    resized = Resize((256, 128))(image)
    expected = np.array(Image.fromarray(rows).resize((128, 256), Image.Resampling.BICUBIC))
    assert np.array_equal(resized.permute(1, 2, 0).numpy(), expected)


def test_resizing_gives_the_golden_test_pipeline(shared: Path) -> None:
    golden = np.load(shared / "golden" / "transforms.npz")
    for name in ("smooth_128x64", "noise_20x9", "large_noise_400x150"):
        image = torch.from_numpy(golden[f"{name}/image_hwc"]).permute(2, 0, 1)
        for recipe, size in (("Base-bagtricks", (256, 128)), ("Base-SBS", (384, 128))):
            assert np.array_equal(Resize(size)(image).numpy(), golden[f"{name}/{recipe}_chw"]), (name, recipe)


def test_the_fast_kernel_equals_pillow_on_smooth_images_and_nearly_so_on_noise(shared: Path) -> None:
    golden = np.load(shared / "golden" / "transforms.npz")
    smooth = torch.from_numpy(golden["smooth_128x64/image_hwc"]).permute(2, 0, 1)
    fast = Resize((256, 128), exact=False)
    assert np.array_equal(fast(smooth).numpy(), golden["smooth_128x64/Base-bagtricks_chw"])
    for source in ((128, 64), (20, 9), (256, 64), (300, 128)):
        image = torch.from_numpy(noise(*source)).permute(2, 0, 1)
        difference = (fast(image).int() - Resize((256, 128))(image).int()).abs()
        assert int(difference.max()) <= 2 and float((difference > 0).float().mean()) < 0.01


def test_the_fast_kernel_does_not_depend_on_the_memory_layout() -> None:
    last = torch.from_numpy(noise(50, 30)).permute(2, 0, 1)
    fast = Resize((64, 32), exact=False)
    assert torch.equal(fast(last), fast(last.contiguous()))


def test_one_number_is_the_shorter_side() -> None:
    assert Resize(8)(torch.zeros(3, 30, 16, dtype=torch.uint8)).shape == (3, 15, 8)
    assert Resize(8)(torch.zeros(3, 16, 30, dtype=torch.uint8)).shape == (3, 8, 15)


def test_an_image_of_the_right_size_is_left_alone() -> None:
    image = torch.from_numpy(noise(8, 4)).permute(2, 0, 1)
    assert torch.equal(Resize((8, 4))(image), image)


@pytest.mark.parametrize("size", [0, -3, (256,), (0, 128), (256.0, 128), "256"])
def test_an_impossible_size_is_refused(size: object) -> None:
    with pytest.raises(ValueError, match="size is"):
        Resize(size)  # type: ignore[arg-type]
