"""Left and right."""

from __future__ import annotations

import torch

from fastreid_lite.data.transforms.draws import check_probability, uniforms


class RandomHorizontalFlip:
    """Mirror left and right.

    Args:
        prob: how often, in [0, 1].
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability(prob, "prob (INPUT.FLIP.PROB)")

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return image.flip(-1) if uniforms(generator, 1)[0] < self.prob else image

    def __repr__(self) -> str:
        return f"RandomHorizontalFlip(prob={self.prob})"
