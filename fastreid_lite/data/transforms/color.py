"""Other light and other cameras."""

from __future__ import annotations

import torch
from torchvision.transforms.v2 import functional as TF

from fastreid_lite.data.transforms.draws import between, check_probability, uniforms


class ColorJitter:
    """Change brightness, contrast, saturation and hue by random amounts, in random order.

    Args:
        prob: how often anything is done, in [0, 1].
        brightness, contrast, saturation: the factor is drawn from [max(0, 1 - x), 1 + x]; x >= 0.
        hue: the shift is drawn from [-x, x], in turns of the colour circle; x in [0, 0.5].
    """

    def __init__(
        self,
        prob: float = 0.5,
        *,
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        hue: float = 0.0,
    ) -> None:
        self.prob = check_probability(prob, "prob (INPUT.CJ.PROB)")
        strengths = {"BRIGHTNESS": brightness, "CONTRAST": contrast, "SATURATION": saturation}
        for key, value in strengths.items():
            if value < 0:
                raise ValueError(f"{key.lower()} is {value!r}, expected a number >= 0 (INPUT.CJ.{key})")
        if not 0 <= hue <= 0.5:
            raise ValueError(f"hue is {hue!r}, expected a number in [0, 0.5] (INPUT.CJ.HUE)")
        factors = [(max(0.0, 1.0 - value), 1.0 + value) for value in strengths.values()]
        kernels = (TF.adjust_brightness, TF.adjust_contrast, TF.adjust_saturation, TF.adjust_hue)
        self._steps = list(zip(kernels, [*factors, (-hue, hue)]))
        self.strengths = (brightness, contrast, saturation, hue)

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if uniforms(generator, 1)[0] >= self.prob:
            return image
        drawn = uniforms(generator, 8)
        for step in sorted(range(4), key=lambda place: drawn[4 + place]):
            kernel, (low, high) = self._steps[step]
            if low != high:
                image = kernel(image, between(low, high, drawn[step]))
        return image

    def __repr__(self) -> str:
        return f"ColorJitter(prob={self.prob}, brightness, contrast, saturation, hue={self.strengths})"
