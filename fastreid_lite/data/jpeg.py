"""The short way for plain JPEG files: libjpeg without Pillow's open, load and copy, about twice as fast.

A file takes it only where the pixels are Pillow's, bit for bit: 8-bit grey or YCbCr with nothing in the header that
Pillow would act on (EXIF, XMP, Adobe, ICC, several pictures). Everything else goes through Pillow.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image

# Segments that neither decoder acts on, or that both leave to libjpeg.
_DQT, _DHT, _DRI, _APP0, _COMMENT = 0xDB, 0xC4, 0xDD, 0xE0, 0xFE
_PLAIN_SEGMENTS = frozenset((_DQT, _DHT, _DRI, _APP0, _COMMENT))
_START_OF_FRAME = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive; all Huffman coded
_START_OF_SCAN = 0xDA
_MOST_PIXELS = 50_000_000  # larger ones are left to Pillow and its guard against decompression bombs
_RGB = 3  # the number of torchvision.io.ImageReadMode.RGB


def decode_plain_jpeg(data: bytearray) -> torch.Tensor | None:
    """The pixels of a plain JPEG file.

    Args:
        data: the whole file.

    Returns:
        (H, W, 3) uint8 RGB; None where the file is not a plain JPEG, is broken, or this machine's two decoders differ:
        then Pillow has the word.
    """
    if not is_plain_jpeg(data):
        return None
    decode = _decoder()
    if decode is None:
        return None
    try:
        return decode(data)
    except RuntimeError:
        return None  # cut or broken; Pillow finds the words for it


def is_plain_jpeg(data: bytearray) -> bool:
    """True for an 8-bit JPEG of 1 or 3 components whose header holds only tables, JFIF and comments."""
    if data[:2] != b"\xff\xd8":
        return False
    at, framed = 2, False
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return False
        marker = data[at + 1]
        if marker == _START_OF_SCAN:
            return framed
        if marker in _START_OF_FRAME:
            height = data[at + 5] << 8 | data[at + 6]
            width = data[at + 7] << 8 | data[at + 8]
            if data[at + 4] != 8 or data[at + 9] not in (1, 3) or height * width > _MOST_PIXELS:
                return False
            framed = True
        elif marker not in _PLAIN_SEGMENTS:
            return False
        at += 2 + (data[at + 2] << 8 | data[at + 3])
    return False


@functools.cache
def _decoder() -> Callable[[bytearray], torch.Tensor] | None:
    """torchvision's libjpeg, if it is there and gives what Pillow's gives on a trial image; found once a process.

    The operator is called by its own name because ``torchvision.io.decode_jpeg`` around it is deprecated and warns.
    """
    try:
        import torchvision  # noqa: F401  (loads the operators)

        operator = torch.ops.image.decode_jpeg
    except (ImportError, AttributeError, RuntimeError):
        return None

    def decode(data: bytearray) -> torch.Tensor:
        planes: torch.Tensor = operator(torch.frombuffer(data, dtype=torch.uint8), _RGB, False)
        return planes.permute(1, 2, 0).contiguous()

    return decode if _agrees_with_pillow(decode) else None


def _agrees_with_pillow(decode: Callable[[bytearray], torch.Tensor]) -> bool:
    """Decode one noisy image, with and without halved colour, both ways: do all pixels agree?"""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (19, 23, 3), dtype=np.uint8))
    for subsampling in ("4:4:4", "4:2:0"):
        file = io.BytesIO()
        noise.save(file, "JPEG", quality=90, subsampling=subsampling)
        with Image.open(file) as image:
            expected = np.array(image)
        try:
            found = decode(bytearray(file.getvalue()))
        except (RuntimeError, TypeError):
            return False
        if not np.array_equal(found.numpy(), expected):
            return False
    return True
