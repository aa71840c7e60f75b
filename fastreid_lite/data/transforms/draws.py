"""What a transform is, and where its random numbers come from."""

from __future__ import annotations

from typing import Any, Protocol

import torch

_MASK = (1 << 64) - 1


class Transform(Protocol):
    """A pure function of an image and a generator: the same image and generator state give the same result.

    It takes (3, H, W) uint8, returns (3, H', W') uint8, and leaves its input as it was. Memory layout is free; images
    mostly come with the channels last. It keeps nothing from one call to the next.
    """

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor: ...


def sample_seed(seed: int, epoch: int, position: int) -> int:
    """The seed in 0..2**64-1 of the augmentation of one sample.

    Three rounds of the SplitMix64 finaliser (Steele, Lea, Flood 2014), one for each number, so that neighbouring
    positions and epochs have nothing in common.

    Args:
        seed: of the run.
        epoch: from 0.
        position: place in the epoch's order over all processes, from 0.
    """
    state = 0
    for number in (seed, epoch, position):
        state = (state + 0x9E3779B97F4A7C15 + number) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def uniforms(generator: torch.Generator, count: int) -> list[float]:
    """``count`` numbers from [0, 1), drawn at once, which is several times faster than one by one."""
    drawn: list[float] = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
    return drawn


def between(low: float, high: float, uniform: float) -> float:
    """``uniform`` in [0, 1) stretched to [low, high)."""
    return low + (high - low) * uniform


def check_probability(value: Any, name: str) -> float:
    """``value`` as a float, refused with ``name`` where it is not a probability."""
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} is {value!r}, expected a probability in [0, 1]")
    return number


def check_size(value: Any, name: str) -> tuple[int, int]:
    """``value`` as (height, width) in pixels, refused with ``name`` where it is not a pair of positive integers."""
    pair = tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):
        raise ValueError(f"{name} is {value!r}, expected a height and a width in pixels, like (256, 128)")
    return pair
