from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

from fastreid_lite.data.images import ImageReadError, read_image

NOISE = np.random.default_rng(0).integers(0, 256, (6, 4, 3), dtype=np.uint8)


def pixels(path: Path) -> np.ndarray:
    return read_image(path).permute(1, 2, 0).numpy()


def save(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


def test_an_image_is_three_planes_of_uint8(tmp_path: Path) -> None:
    image = read_image(str(save(Image.fromarray(NOISE), tmp_path / "a.png")))
    assert image.dtype == torch.uint8 and image.shape == (3, 6, 4)
    assert np.array_equal(image.permute(1, 2, 0).numpy(), NOISE)


# What each orientation asks a viewer to do, written out with Pillow's own names.
UNDO = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@pytest.mark.parametrize("kind", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", UNDO)
def test_the_orientation_of_exif_is_applied(tmp_path: Path, orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "webp" else {}
    path = save(Image.fromarray(NOISE), tmp_path / f"a.{kind}", exif=exif, **options)
    plain = save(Image.fromarray(NOISE), tmp_path / f"plain.{kind}", **options)
    with Image.open(plain) as image:
        undo = UNDO[orientation]
        expected = np.array(image.convert("RGB") if undo is None else image.convert("RGB").transpose(undo))
    assert np.array_equal(pixels(path), expected)
    assert pixels(path).shape == ((4, 6, 3) if orientation >= 5 else (6, 4, 3))


@pytest.mark.parametrize(
    "block", [b"Exif\0\0broken", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"]
)
def test_a_broken_exif_block_counts_as_none(tmp_path: Path, block: bytes) -> None:
    path = save(Image.fromarray(NOISE), tmp_path / "a.jpg", exif=block)
    assert np.array_equal(pixels(path), pixels(save(Image.fromarray(NOISE), tmp_path / "b.jpg")))


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_out_of_range_counts_as_none(tmp_path: Path, value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value
    assert np.array_equal(pixels(save(Image.fromarray(NOISE), tmp_path / "a.png", exif=exif)), NOISE)


RED = (200, 10, 30)


def of_mode(mode: str) -> Image.Image:
    if mode == "1":
        return Image.new("1", (4, 6), 1)
    if mode == "P":
        return Image.new("RGB", (4, 6), RED).convert("P", palette=Image.Palette.ADAPTIVE)
    colours = {"L": 77, "LA": (77, 255), "RGB": RED, "RGBA": (*RED, 255), "CMYK": (0, 255, 255, 0), "I;16": 0x4D4D}
    return Image.new(mode, (4, 6), colours[mode])


@pytest.mark.parametrize(
    ("mode", "kind", "expected"),
    [
        ("1", "png", (255, 255, 255)),
        ("L", "png", (77, 77, 77)),
        ("L", "jpg", (77, 77, 77)),
        ("LA", "png", (77, 77, 77)),
        ("P", "png", RED),
        ("RGB", "png", RED),
        ("RGBA", "png", RED),
        ("CMYK", "tif", (255, 0, 0)),
        ("I;16", "png", (77, 77, 77)),
        ("I;16", "tif", (77, 77, 77)),
    ],
)
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str, kind: str, expected: tuple[int, int, int]) -> None:
    read = pixels(save(of_mode(mode), tmp_path / f"a.{kind}"))
    assert read.shape == (6, 4, 3)
    assert (read == np.array(expected)).all(), read[0, 0]


def test_transparent_pixels_are_laid_over_white(tmp_path: Path) -> None:
    for name, image in {
        "rgba.png": Image.new("RGBA", (4, 6), (200, 10, 30, 0)),
        "la.png": Image.new("LA", (4, 6), (5, 0)),
    }.items():
        assert (pixels(save(image, tmp_path / name)) == 255).all()
    half = pixels(save(Image.new("RGBA", (4, 6), (0, 0, 0, 128)), tmp_path / "half.png"))
    assert (np.abs(half.astype(int) - 127) <= 1).all()
    palette = Image.new("P", (4, 6), 0)
    palette.putpalette([9, 9, 9])
    assert (pixels(save(palette, tmp_path / "p.png", transparency=0)) == 255).all()
    key = Image.new("RGB", (4, 6), RED)
    assert (pixels(save(key, tmp_path / "key.png", transparency=RED)) == 255).all()


@pytest.mark.parametrize("kind", ["png", "tif"])
def test_16_bits_are_scaled_and_not_saturated(tmp_path: Path, kind: str) -> None:
    ramp = (np.arange(16, dtype=np.uint16) * 4096).reshape(4, 4)
    read = pixels(save(Image.fromarray(ramp), tmp_path / f"a.{kind}"))
    assert np.array_equal(read[:, :, 0], np.round(ramp * (255 / 65535)).astype(np.uint8))
    assert (read == read[:, :, :1]).all()


def test_mode_i_is_scaled_within_16_bits_and_refused_beyond(tmp_path: Path) -> None:
    inside = Image.fromarray(np.array([[0, 65535]], dtype=np.int32))
    assert pixels(save(inside, tmp_path / "a.tif"))[0, :, 0].tolist() == [0, 255]
    beyond = save(Image.fromarray(np.array([[-1, 70000]], dtype=np.int32)), tmp_path / "b.tif")
    with pytest.raises(ImageReadError, match=r"b\.tif.*mode I with values -1\.\.70000"):
        read_image(beyond)


def test_mode_f_is_refused_by_name(tmp_path: Path) -> None:
    path = save(Image.fromarray(np.zeros((6, 4), dtype=np.float32)), tmp_path / "a.tif")
    with pytest.raises(ImageReadError, match=r"a\.tif.*mode F"):
        read_image(path)


def broken_files(folder: Path) -> dict[str, str]:
    """Path of each kind of broken file, and what its error has to say."""
    large = np.random.default_rng(1).integers(0, 256, (64, 32, 3), dtype=np.uint8)
    whole = save(Image.fromarray(large), folder / "whole.jpg").read_bytes()
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "head.jpg").write_bytes(whole[:30])
    (folder / "text.jpg").write_text("not an image")
    (folder / "folder.jpg").mkdir()
    (folder / "dead.jpg").symlink_to(folder / "nowhere.jpg")
    os.mkfifo(folder / "pipe.jpg")
    return {
        "empty.jpg": "the file is empty",
        "cut.jpg": "truncated",
        "head.jpg": "cannot read image",
        "text.jpg": "not an image of a known format",
        "folder.jpg": "it is a directory",
        "dead.jpg": "a link to '.*nowhere.jpg', which does not exist",
        "pipe.jpg": "not a regular file",
        "missing.jpg": "no such file",
    }


def test_a_broken_file_is_an_error_with_its_path_in_bounded_time(tmp_path: Path) -> None:
    start = time.monotonic()
    for name, reason in broken_files(tmp_path).items():
        with pytest.raises(ImageReadError, match=reason) as caught:
            read_image(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    assert time.monotonic() - start < 10


def test_a_path_that_no_file_can_have_is_an_error_with_its_path() -> None:
    with pytest.raises(ImageReadError, match="a\\\\x00b"):
        read_image("a\0b")


def test_reading_leaves_pillows_setting_for_cut_files_alone(tmp_path: Path) -> None:
    with pytest.raises(ImageReadError):
        broken_files(tmp_path)
        read_image(tmp_path / "cut.jpg")
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


@pytest.mark.parametrize("folder", ["数据 集", "a b", "a#b", "a[1]b"])
def test_a_path_may_hold_any_character(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    path = save(Image.fromarray(NOISE), tmp_path / folder / "行人_0001_c1s1.png")
    assert np.array_equal(pixels(path), NOISE)


def test_a_box_is_cut_out_of_the_upright_image(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = save(Image.fromarray(NOISE), tmp_path / "a.png", exif=exif)
    part = read_image(path, (1, 2, 3, 2)).permute(1, 2, 0).numpy()
    assert np.array_equal(part, np.rot90(NOISE, -1)[2:4, 1:4])


def test_a_box_over_the_edge_is_cut_off_and_one_outside_is_an_error(tmp_path: Path) -> None:
    path = save(Image.fromarray(NOISE), tmp_path / "a.png")
    part = read_image(path, np.array([-1, -2, 3, 4])).permute(1, 2, 0).numpy()
    assert np.array_equal(part, NOISE[:2, :2])
    with pytest.raises(ImageReadError, match=r"box x=4 y=0 w=2 h=2 lies outside of the image \(4x6\)"):
        read_image(path, (4, 0, 2, 2))
