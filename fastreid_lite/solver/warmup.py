"""Warm-up: the share of the learning rate that the first iterations use."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fastreid_lite.utils.registry import lookup


def constant_warmup(progress: float, factor: float) -> float:
    """``factor`` throughout, whatever ``progress``.

    >>> constant_warmup(0.5, 0.1)
    0.1
    """
    return factor


def linear_warmup(progress: float, factor: float) -> float:
    """From ``factor`` to 1 in a straight line; ``progress`` in [0, 1).

    >>> linear_warmup(0.5, 0.2)
    0.6
    """
    return factor * (1.0 - progress) + progress


def exp_warmup(progress: float, factor: float) -> float:
    """From ``factor`` to 1 geometrically; ``progress`` in [0, 1).

    >>> round(exp_warmup(0.5, 0.01), 12)
    0.1
    """
    return float(factor ** (1.0 - progress))


WARMUP_METHODS: dict[str, Callable[..., float]] = {
    "constant": constant_warmup,
    "linear": linear_warmup,
    "exp": exp_warmup,
}


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """The factor on the learning rate in the first iterations, 1 afterwards and never above 1.

    >>> warmup = Warmup(iters=4, factor=0.2, method="linear")
    >>> [round(warmup(iteration), 3) for iteration in range(6)]
    [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]

    Args:
        iters: length in iterations (SOLVER.WARMUP_ITERS); 0 means no warm-up.
        factor: factor at iteration 0, in [0, 1] (SOLVER.WARMUP_FACTOR).
        method: "constant", "linear" or "exp" (SOLVER.WARMUP_METHOD).

    Raises:
        ValueError: ``iters`` is not a whole number >= 0 or ``factor`` not in [0, 1].
        KeyError: an unknown ``method``.
    """

    iters: int = 0
    factor: float = 0.1
    method: str = "linear"

    def __post_init__(self) -> None:
        if isinstance(self.iters, bool) or int(self.iters) != self.iters or self.iters < 0:
            raise ValueError(
                f"SOLVER.WARMUP_ITERS is {self.iters!r}; expected a whole number of iterations, 0 for no warm-up"
            )
        if not (math.isfinite(self.factor) and 0.0 <= self.factor <= 1.0):
            raise ValueError(
                f"SOLVER.WARMUP_FACTOR is {self.factor!r}; expected a share of the base rate in [0, 1], since above 1 "
                f"the warm-up would go over SOLVER.BASE_LR"
            )
        lookup(WARMUP_METHODS, self.method, "warm-up method", "SOLVER.WARMUP_METHOD")

    def __call__(self, iteration: int) -> float:
        """The factor for the step in progress, ``iteration`` counted from 0."""
        if iteration >= self.iters:
            return 1.0
        return WARMUP_METHODS[self.method](iteration / self.iters, self.factor)
