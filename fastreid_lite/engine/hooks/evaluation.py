"""Evaluation in the midst of training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.hooks.base import PRODUCE, HookBase
from fastreid_lite.engine.random_state import kept_random_state
from fastreid_lite.engine.triggers import Trigger, as_trigger, every
from fastreid_lite.utils.nesting import flatten

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase


class EvalHook(HookBase):
    """Evaluates every ``period`` and at the end of a finished run, once at any step, and publishes the numbers.

    Args:
        period: steps; or a trigger, or ``(n, "epoch")``. 0: only at the end; negative: never.
        function: returns numbers by name, nested dicts allowed ("Market1501": {"mAP": ...} becomes "Market1501/mAP"),
            the same on every process; it is called on all of them. None where there is nothing to say.

    Attributes:
        results: what the function returned last.
    """

    priority = PRODUCE

    def __init__(
        self, period: int | Trigger | tuple[float, str], function: Callable[[], Mapping[str, Any] | None]
    ) -> None:
        if not callable(function):
            raise TypeError(f"EvalHook needs a function that returns numbers by name, got {function!r}")
        count = period if isinstance(period, int) else period[0] if isinstance(period, tuple) else 1
        self.trigger = every(period) if isinstance(period, int) else as_trigger(period)
        self._function = function
        self._at_end = count >= 0
        self._done: int | None = None
        self.results: Mapping[str, Any] | None = None

    def before_train(self) -> None:
        if self._done is not None and self._done >= self.trainer.iter:
            self._done = None  # of a run that this one does not go on with

    def __call__(self, trainer: TrainerBase) -> None:
        if self._done == trainer.iter:
            return
        # An observer: whatever the function draws from the global generators, the next step finds them untouched.
        with kept_random_state():
            results = self._function()
        self.results = None if results is None else plain(results)
        self._done = trainer.iter
        if self.results:
            trainer.storage.put_results(flatten(self.results))

    def finish(self, trainer: TrainerBase) -> None:
        if self._at_end:
            self(trainer)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done, "results": copy.deepcopy(self.results)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done, self.results = state["done"], state["results"]


def plain(results: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``results`` as dicts of floats, as a checkpoint may hold them.

    Raises:
        TypeError: a value is no number.
    """
    numbers: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            numbers[str(name)] = plain(value, f"{prefix}{name}/")
            continue
        try:
            numbers[str(name)] = float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"the evaluation returned {prefix}{name} = {value!r}: a number, or a dict of numbers, was expected"
            ) from None
    return numbers
