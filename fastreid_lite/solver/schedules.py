"""Learning rates as pure functions of the iteration: nothing to step, nothing to save, nothing to lose on resume."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from fastreid_lite.solver.warmup import Warmup


@dataclass(frozen=True, kw_only=True)
class StepClock:
    """How many steps the main schedule has made at an iteration.

    It stands at 0 through the first ``start`` units, then moves by one at each end of a unit. fast-reid's main schedule
    has the epoch as its unit and a start that depends on the warm-up; a schedule that counts from the beginning has the
    iteration as its unit and starts at 0.

    >>> clock = StepClock(unit=10, start=2)
    >>> [clock(iteration) for iteration in (0, 29, 30, 39, 40)]
    [0, 0, 1, 1, 2]

    Args:
        unit: iterations per step, at least 1.
        start: units before the clock begins to move, at least 0.

    Raises:
        ValueError: a value out of range.
    """

    unit: int = 1
    start: int = 0

    def __post_init__(self) -> None:
        if self.unit < 1:
            raise ValueError(f"a step of the schedule takes {self.unit} iterations; expected at least 1")
        if self.start < 0:
            raise ValueError(f"the schedule starts at {self.start}; expected 0 or more")

    def __call__(self, iteration: int) -> int:
        """Steps made when the step in progress is ``iteration``, counted from 0."""
        steps = iteration // self.unit - self.start
        return steps if steps > 0 else 0

    def first_iteration(self, step: int) -> int:
        """The first iteration at which the clock shows ``step``."""
        return (step + self.start) * self.unit if step > 0 else 0


class LRSchedule(ABC):
    """A learning rate as a function of the iteration.

    Args:
        warmup: factor on the first iterations; None means none.
    """

    def __init__(self, *, warmup: Warmup | None = None) -> None:
        self.warmup = warmup if warmup is not None else Warmup(iters=0)

    def lr(self, base_lr: float, iteration: int) -> float:
        """The rate of the step in progress for a parameter group.

        Args:
            base_lr: the group's own base rate, its factor included.
            iteration: optimizer steps done so far = number of the step in progress, from 0.
        """
        rate = self.main_lr(base_lr, iteration)
        return rate if iteration >= self.warmup.iters else self.warmup(iteration) * rate

    def next_change(self, iteration: int) -> int:
        """An iteration after ``iteration`` before which the rate does not change, for any group.

        Whoever sets the rates need not ask again before it. This says "the next one", which is always right.
        """
        return iteration + 1

    @abstractmethod
    def main_lr(self, base_lr: float, iteration: int) -> float:
        """The rate without warm-up."""


class MultiStepSchedule(LRSchedule):
    """The base rate, multiplied by ``gamma`` at each milestone.

    >>> schedule = MultiStepSchedule((2, 4), gamma=0.5)
    >>> [schedule.lr(1.0, iteration) for iteration in range(6)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]

    Args:
        milestones: steps of ``clock`` at which the rate falls, in any order; one named twice counts twice.
        gamma: the factor, above 0 (SOLVER.GAMMA).
        clock: what the milestones count; None means iterations from 0.
        warmup: see :class:`LRSchedule`.

    Raises:
        ValueError: a negative milestone, or ``gamma`` not above 0.
    """

    def __init__(
        self,
        milestones: Sequence[float],
        *,
        gamma: float = 0.1,
        clock: StepClock | None = None,
        warmup: Warmup | None = None,
    ) -> None:
        super().__init__(warmup=warmup)
        if not (math.isfinite(gamma) and gamma > 0):
            raise ValueError(f"SOLVER.GAMMA is {gamma!r}; expected a number above 0")
        negative = [milestone for milestone in milestones if not milestone >= 0]
        if negative:
            raise ValueError(f"SOLVER.STEPS has the milestone {negative[0]!r}; expected 0 or more")
        self.milestones = tuple(sorted(milestones))
        self.gamma = float(gamma)
        self.clock = clock if clock is not None else StepClock()

    def main_lr(self, base_lr: float, iteration: int) -> float:
        passed = bisect_right(self.milestones, self.clock(iteration))
        return float(base_lr * self.gamma**passed)

    def next_change(self, iteration: int) -> int:
        if iteration < self.warmup.iters:
            return iteration + 1
        passed = bisect_right(self.milestones, self.clock(iteration))
        if passed == len(self.milestones):
            return sys.maxsize
        return self.clock.first_iteration(math.ceil(self.milestones[passed]))


class CosineSchedule(LRSchedule):
    """Half a cosine from the base rate to ``eta_min``.

    SGDR, Loshchilov and Hutter 2017, equation 5, without restarts. Past ``length`` the curve goes on (and up again), as
    fast-reid's does; :func:`~fastreid_lite.solver.build_schedule.build_lr_schedule` chooses lengths that no iteration
    of the run goes past.

    >>> schedule = CosineSchedule(2, eta_min=0.2)
    >>> [round(schedule.lr(1.0, iteration), 3) for iteration in range(3)]
    [1.0, 0.6, 0.2]

    Args:
        length: steps of ``clock`` to the minimum; below 1 the rate stays at its base.
        eta_min: the rate at the end, the same for each group (SOLVER.ETA_MIN_LR). A group whose base rate is lower
            keeps its base rate: a schedule never raises one.
        clock: what ``length`` counts; None means iterations from 0.
        warmup: see :class:`LRSchedule`.

    Raises:
        ValueError: ``eta_min`` is negative or not finite.
    """

    def __init__(
        self, length: int, *, eta_min: float = 0.0, clock: StepClock | None = None, warmup: Warmup | None = None
    ) -> None:
        super().__init__(warmup=warmup)
        if not (math.isfinite(eta_min) and eta_min >= 0):
            raise ValueError(f"SOLVER.ETA_MIN_LR is {eta_min!r}; expected a rate of 0 or more")
        self.length = length
        self.eta_min = float(eta_min)
        self.clock = clock if clock is not None else StepClock()

    def main_lr(self, base_lr: float, iteration: int) -> float:
        steps = self.clock(iteration)
        if self.length < 1 or steps == 0:
            return base_lr
        eta_min = min(self.eta_min, base_lr)
        return eta_min + (base_lr - eta_min) * (1.0 + math.cos(math.pi * steps / self.length)) / 2.0

    def next_change(self, iteration: int) -> int:
        if iteration < self.warmup.iters:
            return iteration + 1
        return self.clock.first_iteration(self.clock(iteration) + 1)
