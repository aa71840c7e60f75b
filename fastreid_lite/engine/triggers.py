"""When: one family of objects answers "now?" for hooks, evaluation, checkpoints and the stop.

A trigger is asked once at the boundary after a step. Most read counters only, and can say beforehand when they may
fire next, so that nothing is asked in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from fastreid_lite.engine.moment import Moment

UNITS = ("iteration", "epoch", "second")


class Trigger:
    """Answers "now?". Combine with ``&``, ``|`` and ``~``."""

    #: True where the answer depends on published numbers: then it is asked at its hook's turn, not before.
    reads_values = False
    #: True where the answer changes when the run ends.
    reads_end = False

    def __call__(self, moment: Moment) -> bool:
        """True where it fires. Asked once at a boundary, in order: an answer may change the trigger's state."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(moment)")

    def next_iteration(self, moment: Moment) -> float:
        """The first number of steps done, after ``moment``, at which it may fire; infinity for never.

        It is asked there and at every end of an epoch.
        """
        return moment.iteration + 1

    def state_dict(self) -> dict[str, Any]:
        """What it remembers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""

    def __and__(self, other: Any) -> Trigger:
        from fastreid_lite.engine.trigger_sets import AllOf

        return AllOf(self, other)

    def __or__(self, other: Any) -> Trigger:
        from fastreid_lite.engine.trigger_sets import AnyOf

        return AnyOf(self, other)

    def __invert__(self) -> Trigger:
        from fastreid_lite.engine.trigger_sets import Not

        return Not(self)


class Never(Trigger):
    """Does not fire."""

    def __call__(self, moment: Moment) -> bool:
        return False

    def next_iteration(self, moment: Moment) -> float:
        return math.inf


class AtEnd(Trigger):
    """Fires once, where the run ends finished."""

    reads_end = True

    def __call__(self, moment: Moment) -> bool:
        return moment.last

    def next_iteration(self, moment: Moment) -> float:
        return math.inf


class Interval(Trigger):
    """Every ``period`` iterations, epochs or seconds. Period 0 is only at the end, a negative one never: use ``every``.

    Args:
        period: > 0; whole for iterations; epochs may be fractions: it then fires at the step that reaches a multiple.
        unit: "iteration", "epoch" or "second".
    """

    def __init__(self, period: float, unit: str = "iteration") -> None:
        _check_period(period, unit)
        if not period > 0 or math.isinf(period):
            raise ValueError(
                f"period is {period!r}, expected a positive number; every(0) is at the end, every(-1) never"
            )
        if unit == "iteration" and int(period) != period:
            raise ValueError(f"period is {period!r} iterations, expected a whole number")
        self.period = period
        self.unit = unit
        self._fired_at = 0.0

    def __call__(self, moment: Moment) -> bool:
        if self.unit == "iteration":
            return moment.iteration % self.period == 0
        if self.unit == "second":
            if moment.seconds - self._fired_at < self.period:
                return False
            self._fired_at = moment.seconds
            return True
        if int(self.period) == self.period:
            return moment.epoch_ended and moment.epoch % self.period == 0
        return self._multiples(moment.epoch_detail) > self._multiples(moment.previous_epoch_detail)

    def _multiples(self, detail: float) -> int:
        # 3 * (1 / 3) must count as 1: a hair is added before rounding down.
        return math.floor(detail / self.period + 1e-9)

    def next_iteration(self, moment: Moment) -> float:
        if self.unit == "iteration":
            return (moment.iteration // self.period + 1) * self.period
        if self.unit == "epoch" and int(self.period) == self.period:
            if moment.epoch_length is None:
                return math.inf
            return moment.iteration + moment.epoch_length - moment.epoch_step
        if self.unit == "second" and moment.clock_step is not None:
            return moment.clock_step
        return moment.iteration + 1

    def state_dict(self) -> dict[str, Any]:
        return {"fired_at": self._fired_at} if self.unit == "second" else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fired_at = state.get("fired_at", 0.0)


class At(Trigger):
    """At given points: after so many iterations, or epochs, done.

    Args:
        points: one or several numbers.
        unit: "iteration" or "epoch".
    """

    def __init__(self, points: float | Iterable[float], unit: str = "iteration") -> None:
        if unit not in ("iteration", "epoch"):
            raise ValueError(f"unit is {unit!r}, expected 'iteration' or 'epoch'")
        given = [points] if isinstance(points, int | float | str) else list(points)
        if not all(isinstance(point, int | float) and not isinstance(point, bool) for point in given):
            raise TypeError(f"points are {points!r}, expected a number or several")
        if not all(point > 0 and (unit == "epoch" or int(point) == point) for point in given):
            raise ValueError(f"points are {points!r}: {unit}s done, expected numbers > 0, whole ones for iterations")
        self.points = sorted(set(given))
        self.unit = unit

    def __call__(self, moment: Moment) -> bool:
        if self.unit == "iteration":
            return moment.iteration in self.points
        now, before = moment.epoch_detail, moment.previous_epoch_detail
        return any(before + 1e-9 < point <= now + 1e-9 for point in self.points)

    def next_iteration(self, moment: Moment) -> float:
        if self.unit == "epoch":
            return moment.iteration + 1
        return next((point for point in self.points if point > moment.iteration), math.inf)


class Once(Trigger):
    """The first time that it is asked, in the whole run, resumed parts included."""

    def __init__(self) -> None:
        self._done = False

    def __call__(self, moment: Moment) -> bool:
        fires, self._done = not self._done, True
        return fires

    def next_iteration(self, moment: Moment) -> float:
        return math.inf if self._done else moment.iteration + 1

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done = state["done"]


class Within(Trigger):
    """At every boundary from ``start`` on, before ``stop`` (iterations or epochs done); None leaves a side open."""

    def __init__(self, start: float | None = None, stop: float | None = None, unit: str = "iteration") -> None:
        if unit not in ("iteration", "epoch"):
            raise ValueError(f"unit is {unit!r}, expected 'iteration' or 'epoch'")
        self.start = -math.inf if start is None else start
        self.stop = math.inf if stop is None else stop
        if not self.start < self.stop:
            raise ValueError(f"the range from {start} to {stop} is empty: start must be below stop")
        self.unit = unit

    def __call__(self, moment: Moment) -> bool:
        return self.start <= (moment.iteration if self.unit == "iteration" else moment.epoch_detail) < self.stop

    def next_iteration(self, moment: Moment) -> float:
        following = moment.iteration + 1
        if self.unit == "epoch":
            return following
        return max(following, self.start) if following < self.stop else math.inf


class Function(Trigger):
    """Where ``function(trainer)`` is true. It must answer the same on every process."""

    reads_values = True

    def __init__(self, function: Callable[[Any], bool]) -> None:
        if not callable(function):
            raise TypeError(f"Function needs a function of the trainer, got {function!r}")
        self.function = function

    def __call__(self, moment: Moment) -> bool:
        return bool(self.function(moment.trainer))


def _check_period(period: Any, unit: Any) -> None:
    if unit not in UNITS:
        raise ValueError(f"unit is {unit!r}, expected one of {', '.join(UNITS)}")
    if isinstance(period, bool) or not isinstance(period, int | float):
        raise TypeError(f"period is {period!r}, expected a number")


def every(period: float, unit: str = "iteration") -> Trigger:
    """``Interval(period, unit)``; only at the end where ``period`` is 0, never where it is negative.

    >>> every(5)(Moment(iteration=10)), every(0)(Moment(iteration=10)), every(-1)(Moment(iteration=10, last=True))
    (True, False, False)
    """
    _check_period(period, unit)
    if period == 0:
        return AtEnd()
    return Never() if period < 0 else Interval(period, unit)


def as_trigger(spec: Any) -> Trigger:
    """The trigger that ``spec`` means: a trigger itself, ``(period, unit)``, a function of the trainer, None for never.

    Raises:
        TypeError: none of these.
    """
    if isinstance(spec, Trigger):
        return spec
    if spec is None:
        return Never()
    if isinstance(spec, tuple) and len(spec) == 2:
        return every(*spec)
    if callable(spec):
        return Function(spec)
    raise TypeError(f"a trigger is a Trigger, (period, unit), a function or None, got {spec!r}")


def __getattr__(name: str) -> Any:
    # Lives in a file of its own that needs this one; the names are the same family.
    if name in ("AllOf", "AnyOf", "Not"):
        from fastreid_lite.engine import trigger_sets

        return getattr(trigger_sets, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
