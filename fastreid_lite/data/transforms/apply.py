"""Now and then."""

from __future__ import annotations

import torch

from fastreid_lite.data.transforms.draws import Transform, check_probability, uniforms


class RandomApply:
    """Use a transform on some images only.

    Args:
        transform: what to do.
        prob: how often, in [0, 1].
    """

    def __init__(self, transform: Transform, prob: float) -> None:
        self.transform = transform
        self.prob = check_probability(prob, "prob")

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return self.transform(image, generator) if uniforms(generator, 1)[0] < self.prob else image

    def __repr__(self) -> str:
        return f"RandomApply({self.transform!r}, prob={self.prob})"
