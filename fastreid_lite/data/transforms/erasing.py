"""A rectangle painted over: an occlusion."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from fastreid_lite.data.transforms.crop import check_interval
from fastreid_lite.data.transforms.draws import between, check_probability, uniforms


class RandomErasing:
    """Paint a random rectangle in one colour (Zhong et al. 2020, "Random erasing data augmentation", algorithm 1).

    Args:
        prob: how often, in [0, 1].
        value: the colour, RGB in 0..255; rounded, since images are uint8. The mean of the pixels makes the rectangle
            zero in the network's eyes.
        scale: least and greatest part of the image's area, in (0, 1].
        ratio: least and greatest height / width, drawn evenly in the logarithm.
    """

    attempts = 10

    def __init__(
        self,
        prob: float = 0.5,
        *,
        value: Sequence[float] = (123.675, 116.28, 103.53),
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
    ) -> None:
        self.prob = check_probability(prob, "prob (INPUT.REA.PROB)")
        colour = [round(float(channel)) for channel in value]
        if len(colour) != 3 or not all(0 <= channel <= 255 for channel in colour):
            raise ValueError(f"value is {list(value)!r}, expected three numbers in 0..255 (INPUT.REA.VALUE)")
        self.value = tuple(colour)
        self.scale = check_interval(scale, "scale", highest=1.0)
        self.ratio = check_interval(ratio, "ratio")
        self._colour = torch.tensor(colour, dtype=torch.uint8).view(3, 1, 1)

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if uniforms(generator, 1)[0] >= self.prob:
            return image
        full_height, full_width = image.shape[1:]
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(self.attempts):
            area_draw, ratio_draw, top_draw, left_draw = uniforms(generator, 4)
            area = full_height * full_width * between(*self.scale, area_draw)
            ratio = math.exp(between(low, high, ratio_draw))
            height, width = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < height < full_height and 0 < width < full_width:
                top = int(top_draw * (full_height - height + 1))
                left = int(left_draw * (full_width - width + 1))
                erased = image.clone()
                erased[:, top : top + height, left : left + width] = self._colour
                return erased
        return image

    def __repr__(self) -> str:
        return f"RandomErasing(prob={self.prob}, value={self.value}, scale={self.scale}, ratio={self.ratio})"
