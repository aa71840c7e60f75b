"""A detector that returns a dict of losses trains as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import torch

Example = Callable[[str], ModuleType]


def test_the_loss_of_a_detector_falls(example: Example) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        losses = example("detection").main(steps=3, size=64, images=2, batches=1, period=1)
    assert len(losses) == 3 and all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0]


def test_a_drawn_box_is_the_bright_part_of_its_image(example: Example) -> None:
    image, target = example("detection").draw_example(64, torch.Generator().manual_seed(3))
    left, top, right, bottom = target["boxes"][0].long().tolist()
    bright = image[0] > 0.5
    assert bright[top:bottom, left:right].all()
    assert bright.sum() == (right - left) * (bottom - top)
