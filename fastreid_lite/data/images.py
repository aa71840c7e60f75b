"""The one place where an image file becomes pixels, for training, evaluation and prediction alike.

The policy, for every format that Pillow reads:

- Upright: the EXIF (or XMP) orientation is applied; a broken EXIF block counts as none.
- RGB, 8 bits. Grey (1, L) is repeated; palettes are looked up; CMYK, YCbCr and HSV are converted by Pillow.
- Transparent pixels (LA, PA, RGBA, transparency in a palette or a colour key) are laid over white.
- 16-bit grey (I;16, and I with values in 0..65535) is scaled by 255/65535 and rounded.
- F, and I with other values, have no agreed range: refused by name.
- The first frame of a file with several.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError

from fastreid_lite.data.jpeg import decode_plain_jpeg

_ORIENTATION_TAG = 0x0112
_ALPHA_MODES = frozenset(("LA", "La", "PA", "RGBA", "RGBa"))
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe must not block


class ImageReadError(ValueError):
    """A file that cannot be read as an image. The message names the path and the reason."""


def read_image(path: str | os.PathLike[str], box: Sequence[int] | np.ndarray | None = None) -> torch.Tensor:
    """Read an image file by the policy above.

    Args:
        path: the file.
        box: x, y, width, height in pixels of the upright image: the part to cut out. What lies outside of the image is
            cut off. None: the whole image.

    Returns:
        (3, H, W) uint8 RGB in 0..255. In memory the channels are last (strides 1, 3W, 3), as every decoder writes them.

    Raises:
        ImageReadError: no such file, not a file, empty, not an image, cut or broken, a mode that has no agreed meaning
            in RGB, or a box outside of the image.
    """
    name = os.fspath(path)
    data = _read_file(name)
    pixels = decode_plain_jpeg(data)
    if pixels is None:
        pixels = torch.from_numpy(_decode_with_pillow(data, name))
    if box is not None:
        pixels = _cut(pixels, box, name)
    return pixels.permute(2, 0, 1)


def _error(path: str, reason: object) -> ImageReadError:
    return ImageReadError(f"cannot read image {path!r}: {reason}")


def _read_file(path: str) -> bytearray:
    """The bytes of a regular file that is not empty."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        dead = f"a link to {os.readlink(path)!r}, which does not exist" if os.path.islink(path) else "no such file"
        raise _error(path, dead) from None
    except (OSError, ValueError) as error:
        raise _error(path, getattr(error, "strerror", None) or error) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise _error(path, "it is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise _error(path, "it is not a regular file")
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            data = bytearray(status.st_size)
            length = file.readinto(data) or 0
            if length < len(data):  # a file system may hand out less than asked for
                data[length:] = file.read()
    except OSError as error:
        raise _error(path, error.strerror or error) from error
    finally:
        os.close(descriptor)
    if not data:
        raise _error(path, "the file is empty")
    return data


def _decode_with_pillow(data: bytearray, path: str) -> np.ndarray:
    """The pixels (H, W, 3) uint8 of any format that Pillow knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # broken EXIF and odd palettes warn; the policy covers them
        try:
            with Image.open(io.BytesIO(data)) as image:
                image.load()
                # Asked for after load(): some formats turn themselves upright there and drop the tag.
                orientation = _orientation(image)
                pixels = _to_rgb(image)
        except UnidentifiedImageError:
            raise _error(path, "it is not an image of a known format") from None
        # A broken file can fail anywhere in any of Pillow's plugins, with any error; each must name the file.
        except Exception as error:
            raise _error(path, str(error) or type(error).__name__) from error
    return np.ascontiguousarray(_upright(pixels, orientation))


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8; 1 where there is none or the block is broken."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # whatever a broken block makes the parser do, the image itself is good
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Undo an EXIF orientation (EXIF 2.3, tag 274) of (H, W, 3)."""
    if orientation >= 5:  # 5 to 8 are 1, 4, 2, 3 with rows and columns exchanged
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def _to_rgb(image: Image.Image) -> np.ndarray:
    """(H, W, 3) uint8 by the policy of this module."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        return _scale_16_bits(np.asarray(image))
    if image.mode == "F":
        raise ValueError("mode F (floating point) has no agreed range; convert it to 8 or 16 bits first")
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        straight = {"La": "LA", "RGBa": "RGBA"}.get(image.mode)  # from colours multiplied by alpha
        layer = (image.convert(straight) if straight else image).convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return np.array(image.convert("RGB"))


def _scale_16_bits(grey: np.ndarray) -> np.ndarray:
    """Grey (H, W) of 16 bits as (H, W, 3) uint8: 0..65535 to 0..255, rounded."""
    least, most = int(grey.min()), int(grey.max())
    if least < 0 or most > 65535:
        raise ValueError(f"mode I with values {least}..{most}; only 0..65535 has an agreed scale, convert it first")
    scaled = ((grey.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
    return np.repeat(scaled[:, :, None], 3, axis=2)


def _cut(pixels: torch.Tensor, box: Sequence[int] | np.ndarray, path: str) -> torch.Tensor:
    """The part of (H, W, 3) inside of ``box``."""
    x, y, width, height = (int(value) for value in box)
    part = pixels[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]
    if part.shape[0] == 0 or part.shape[1] == 0:
        size = f"{pixels.shape[1]}x{pixels.shape[0]}"
        raise _error(path, f"the box x={x} y={y} w={width} h={height} lies outside of the image ({size})")
    return part.contiguous()
