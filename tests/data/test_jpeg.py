from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from fastreid_lite.data import jpeg
from fastreid_lite.data.jpeg import decode_plain_jpeg, is_plain_jpeg

SMOOTH = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)).resize((53, 37))


def encoded(image: Image.Image, **options: object) -> bytearray:
    file = io.BytesIO()
    image.save(file, "JPEG", **options)  # type: ignore[arg-type]
    return bytearray(file.getvalue())


def by_pillow(data: bytearray) -> np.ndarray | None:
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.array(image.convert("RGB"))
    except Exception:
        return None


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("quality", [20, 75, 100])
def test_a_plain_jpeg_has_pillows_pixels(mode: str, subsampling: str, progressive: bool, quality: int) -> None:
    data = encoded(SMOOTH.convert(mode), subsampling=subsampling, progressive=progressive, quality=quality)
    assert is_plain_jpeg(data)
    decoded = decode_plain_jpeg(data)
    assert decoded is None or np.array_equal(decoded.numpy(), by_pillow(data))


@pytest.mark.parametrize("progressive", [False, True])
def test_a_cut_jpeg_is_left_to_pillow_wherever_it_is_cut(progressive: bool) -> None:
    data = encoded(SMOOTH, progressive=progressive)
    for length in [*range(0, len(data), 13), len(data) - 1]:
        assert decode_plain_jpeg(data[:length]) is None


def test_what_pillow_would_act_on_is_left_to_pillow() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert not is_plain_jpeg(encoded(SMOOTH, exif=exif))
    assert not is_plain_jpeg(encoded(SMOOTH, xmp=b'tiff:Orientation="6"'))
    assert not is_plain_jpeg(encoded(SMOOTH.convert("CMYK")))
    assert not is_plain_jpeg(bytearray(b"\x89PNG\r\n\x1a\n" + b"\0" * 50))
    assert not is_plain_jpeg(bytearray())
    assert not is_plain_jpeg(bytearray(b"\xff\xd8" + b"\0" * 50))


def test_a_comment_does_not_send_a_jpeg_to_pillow() -> None:
    assert is_plain_jpeg(encoded(SMOOTH, comment=b"hello"))


def test_huge_dimensions_are_left_to_pillows_guard() -> None:
    data = encoded(SMOOTH)
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    assert not is_plain_jpeg(data)


def test_a_decoder_that_differs_from_pillow_is_not_used() -> None:
    def off_by_one(data: bytearray) -> object:
        import torch

        pillow = by_pillow(data)
        assert pillow is not None
        return torch.from_numpy(pillow ^ 1)

    def refuses(data: bytearray) -> object:
        raise RuntimeError("no")

    assert not jpeg._agrees_with_pillow(off_by_one)  # type: ignore[arg-type]
    assert not jpeg._agrees_with_pillow(refuses)  # type: ignore[arg-type]


def test_without_a_decoder_everything_goes_to_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpeg, "_decoder", lambda: None)
    assert decode_plain_jpeg(encoded(SMOOTH)) is None
