"""Triggers that read a published number. Their hook's turn comes after the evaluation that wrote it."""

from __future__ import annotations

import math
from typing import Any

from fastreid_lite.engine.triggers import Moment, Trigger


class Comparison:
    """Is a value better than the best so far? NaN never is, and is never taken as the best.

    Args:
        mode: "max" where larger is better, "min" where smaller is.
        min_change: by how much it must be better, in the unit of the value.
    """

    def __init__(self, mode: str = "max", min_change: float = 0.0) -> None:
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}, expected 'max' or 'min'")
        if not min_change >= 0:
            raise ValueError(f"min_change is {min_change!r}, expected a number >= 0")
        self.mode = mode
        self.min_change = min_change

    def better(self, value: float, best: float | None) -> bool:
        """True where ``value`` beats ``best`` (None: anything but NaN does)."""
        if math.isnan(value):
            return False
        if best is None:
            return True
        gain = value - best if self.mode == "max" else best - value
        return gain > self.min_change


class _ValueTrigger(Trigger):
    reads_values = True

    def __init__(self, key: str, mode: str, min_change: float) -> None:
        self.key = key
        self.comparison = Comparison(mode, min_change)
        self.best: float | None = None
        self._seen = -1

    def _fresh(self, moment: Moment) -> float | None:
        """The value of the key where it was written since the last question, else None."""
        found = moment.trainer.storage.published().get(self.key)
        if found is None or found.serial <= self._seen:
            return None
        self._seen = found.serial
        return float(found.value)

    def next_iteration(self, moment: Moment) -> float:
        # It can only change where something is published, and the boundary asks it there; a log writer's numbers
        # appear after its turn, and are looked at after the next step.
        found = moment.trainer.storage.published().get(self.key)
        return math.inf if found is None or found.serial <= self._seen else moment.iteration + 1

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best = state["best"]
        self._seen = state["seen"]


class BestValue(_ValueTrigger):
    """Where ``key`` was written and beats every earlier value. Equal is not better, NaN never is.

    Args:
        key: a published name, such as "Market1501/metric".
        mode: "max" or "min".
        min_change: by how much it must be better.
    """

    def __init__(self, key: str, mode: str = "max", *, min_change: float = 0.0) -> None:
        super().__init__(key, mode, min_change)

    def __call__(self, moment: Moment) -> bool:
        value = self._fresh(moment)
        if value is None or not self.comparison.better(value, self.best):
            return False
        self.best = value
        return True


class EarlyStop(_ValueTrigger):
    """Where ``key`` was written ``patience`` times in a row without an improvement.

    Args:
        key: a published name.
        patience: >= 1.
        mode: "max" or "min".
        min_change: by how much a value must be better to count as an improvement.
    """

    def __init__(self, key: str, patience: int, mode: str = "max", *, min_change: float = 0.0) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise ValueError(f"patience is {patience!r}, expected a whole number >= 1")
        super().__init__(key, mode, min_change)
        self.patience = patience
        self.waited = 0

    def __call__(self, moment: Moment) -> bool:
        value = self._fresh(moment)
        if value is None:
            return False
        if self.comparison.better(value, self.best):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.waited = state["waited"]
