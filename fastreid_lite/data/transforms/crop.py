"""A part of the image."""

from __future__ import annotations

import math
from typing import Any

import torch
from torchvision.transforms.v2 import functional as TF

from fastreid_lite.data.transforms.draws import between, check_size, uniforms
from fastreid_lite.data.transforms.resize import resize


class CenterCrop:
    """The middle of the image; black around it where the image is smaller.

    Args:
        size: (height, width) in pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = check_size(size, "size")

    def __call__(self, image: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        cropped: torch.Tensor = TF.center_crop(image, list(self.size))
        return cropped

    def __repr__(self) -> str:
        return f"CenterCrop(size={self.size})"


class RandomResizedCrop:
    """A part of random area and proportions, resized (Szegedy et al. 2015, "Going deeper with convolutions", part 6).

    Args:
        size: (height, width) of the result in pixels.
        scale: least and greatest part of the image's area, in (0, 1].
        ratio: least and greatest width / height, drawn evenly in the logarithm.
    """

    attempts = 10

    def __init__(
        self,
        size: tuple[int, int],
        *,
        scale: tuple[float, float] = (0.16, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        self.size = check_size(size, "size")
        self.scale = check_interval(scale, "scale", highest=1.0)
        self.ratio = check_interval(ratio, "ratio")

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        top, left, height, width = self._window(image, uniforms(generator, 4 * self.attempts))
        return resize(image[:, top : top + height, left : left + width], self.size, exact=False)

    def _window(self, image: torch.Tensor, drawn: list[float]) -> tuple[int, int, int, int]:
        """Top, left, height, width: the first attempt that fits, else the largest middle part within the ratios."""
        full_height, full_width = image.shape[1:]
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for attempt in range(self.attempts):
            area_draw, ratio_draw, top_draw, left_draw = drawn[4 * attempt : 4 * attempt + 4]
            area = full_height * full_width * between(*self.scale, area_draw)
            ratio = math.exp(between(low, high, ratio_draw))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= full_width and 0 < height <= full_height:
                top = int(top_draw * (full_height - height + 1))
                return top, int(left_draw * (full_width - width + 1)), height, width
        width = max(min(full_width, round(full_height * self.ratio[1])), 1)
        height = max(min(full_height, round(full_width / self.ratio[0])), 1)
        return (full_height - height) // 2, (full_width - width) // 2, height, width

    def __repr__(self) -> str:
        return f"RandomResizedCrop(size={self.size}, scale={self.scale}, ratio={self.ratio})"


def check_interval(value: Any, name: str, highest: float = math.inf) -> tuple[float, float]:
    """``value`` as (low, high) with 0 < low <= high <= highest."""
    pair = tuple(float(number) for number in value) if isinstance(value, (list, tuple)) else ()
    if len(pair) != 2 or not 0 < pair[0] <= pair[1] <= highest:
        limit = "" if math.isinf(highest) else f" <= {highest:g}"
        raise ValueError(f"{name} is {value!r}, expected two numbers with 0 < low <= high{limit}")
    return pair
