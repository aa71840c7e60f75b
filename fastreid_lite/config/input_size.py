"""How large images are: what INPUT resizes to, cuts out, and hands to the model."""

from __future__ import annotations

from typing import Any

Size = tuple[int, int] | int


def crop_size(cfg: Any) -> tuple[int, int] | None:
    """(height, width) in pixels of what is cut out after resizing; None where INPUT.CROP is off.

    Raises:
        ValueError: INPUT.CROP.SIZE is no such pair, nor one number for a square.
    """
    return _pair(cfg.INPUT.CROP.SIZE, "INPUT.CROP.SIZE") if cfg.INPUT.CROP.ENABLED else None


def resize_size(cfg: Any, key: str) -> Size | None:
    """What images are resized to, before a crop: (height, width) in pixels; one number, the shorter side; or None, as
    they are.

    Args:
        key: "SIZE_TRAIN" or "SIZE_TEST": [height, width]; [n], the shorter side; [0] or [], as it is.

    Raises:
        ValueError: another value, or one that leaves images of different sizes where nothing is cut out.
    """
    value, name = getattr(cfg.INPUT, key), f"INPUT.{key}"
    numbers = [value] if isinstance(value, int) else list(value)
    if len(numbers) == 2:
        return _pair(numbers, name)
    if len(numbers) > 2 or not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise ValueError(f"{name} is {value!r}, expected [height, width] in pixels, like [256, 128]")
    if not cfg.INPUT.CROP.ENABLED:
        raise ValueError(
            f"{name} is {value!r}, which leaves images of different sizes that make no batch; give [height, width], or "
            f"switch INPUT.CROP.ENABLED on"
        )
    return numbers[0] if numbers and numbers[0] else None


def model_input_size(cfg: Any, key: str) -> tuple[int, int]:
    """(height, width) in pixels of the images that the model sees: INPUT.CROP.SIZE where it is on, else ``key``.

    Args:
        key: "SIZE_TRAIN" or "SIZE_TEST".

    Raises:
        ValueError: see :func:`crop_size` and :func:`resize_size`.
    """
    size = crop_size(cfg) or resize_size(cfg, key)
    assert isinstance(size, tuple)  # all else needs a crop
    return size


def _pair(value: Any, name: str) -> tuple[int, int]:
    """[height, width], or [n] for a square."""
    numbers = [value] if isinstance(value, int) else list(value)
    pair = tuple(numbers * 2 if len(numbers) == 1 else numbers)
    if len(pair) != 2 or not all(isinstance(number, int) and number > 0 for number in pair):
        raise ValueError(f"{name} is {value!r}, expected [height, width] in pixels, like [256, 128]")
    return pair
