"""The learning rate of each step."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from fastreid_lite.engine.hooks.base import CHANGE, HookBase


class LearningRate(Protocol):
    """A pure function of the step in progress, so a resumed run needs no state of it."""

    def lr(self, base_lr: float, iteration: int) -> float:
        """The rate of step ``iteration``, counted from 0, for a group whose base rate is ``base_lr``."""


class LRScheduler(HookBase):
    """Sets each group's rate before each step, and puts that of the stated group as ``lr``.

    A schedule that has ``next_change(iteration)`` is not asked before the step that it names.

    Args:
        optimizer: a group's base rate is its ``base_lr``, or where it has none, its ``initial_lr`` or ``lr`` as found.
        schedule: see :class:`LearningRate`; the schedules of ``fastreid_lite.solver`` are of this kind.
        logged_group: the group whose rate is put; None for the one named "base", or the first.
    """

    priority = CHANGE

    def __init__(
        self, optimizer: torch.optim.Optimizer, schedule: LearningRate, *, logged_group: int | None = None
    ) -> None:
        self._schedule = schedule
        self._optimizer = optimizer
        groups = optimizer.param_groups
        self._base = [float(group.get("base_lr", group.get("initial_lr", group["lr"]))) for group in groups]
        if logged_group is None:
            logged_group = next((index for index, group in enumerate(groups) if group.get("name") == "base"), 0)
        if not 0 <= logged_group < len(groups):
            raise ValueError(f"logged_group is {logged_group}, the optimizer has {len(groups)} groups")
        self._logged = logged_group
        self._next_change = getattr(schedule, "next_change", None)
        self._ask_at = 0
        self._rate: float | None = None

    def before_train(self) -> None:
        self._ask_at = 0
        if self.trainer.iter == 0:
            self._rate = None
        self.trainer.storage.on_publish(self._put)

    def before_step(self) -> None:
        iteration = self.trainer.iter
        if iteration < self._ask_at:
            return
        rate = self._schedule.lr
        if self._next_change is not None:
            self._ask_at = self._next_change(iteration)
        for index, (base, group) in enumerate(zip(self._base, self._optimizer.param_groups)):
            wanted, current = rate(base, iteration), group["lr"]
            if index == self._logged:
                self._rate = wanted
            if isinstance(current, torch.Tensor):
                current.fill_(wanted)
            elif current != wanted:
                group["lr"] = wanted

    def _put(self) -> None:
        # Not from the optimizer: a resumed run may owe the log line of a step that it has not done.
        if self._rate is not None:
            self.trainer.storage.put_scalar("lr", self._rate, False)

    def after_train(self) -> None:
        if self.trainer.outcome != "finished":
            self._put()  # the line that covers what was done since the last one
        self.trainer.storage.off_publish(self._put)

    def state_dict(self) -> dict[str, Any]:
        return {"rate": self._rate}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rate = state["rate"]
