"""Functions as a hook."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.hook_table import POINTS
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.triggers import as_trigger

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

Callback = Callable[["TrainerBase"], Any]


class CallbackHook(HookBase):
    """Calls functions of the trainer at points of the loop.

    >>> hook = CallbackHook(after_step=lambda trainer: print(trainer.iter))

    Args:
        name: None for the class's name.
        trigger: when ``at_boundary`` is called: a trigger, ``(period, unit)``, or a function of the trainer.
        at_boundary: the function that ``trigger`` drives.
        priority: see :class:`HookBase`.
        points: any of before_train, before_epoch, before_step, after_backward, after_step, after_epoch, after_train.

    Raises:
        TypeError: a point has another name, or of ``trigger`` and ``at_boundary`` only one is given.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        trigger: Any = None,
        at_boundary: Callback | None = None,
        priority: int = HookBase.priority,
        **points: Callback | None,
    ) -> None:
        unknown = sorted(set(points) - set(POINTS))
        if unknown:
            raise TypeError(f"CallbackHook got {', '.join(unknown)}, expected any of {', '.join(POINTS)}")
        if (trigger is None) != (at_boundary is None):
            raise TypeError("CallbackHook needs both trigger and at_boundary, or neither")
        self.name = name
        self.priority = priority
        if at_boundary is not None:
            self.trigger = as_trigger(trigger)
        self._at_boundary = at_boundary
        weak = weakref.proxy(self)
        for point, function in points.items():
            if function is not None:
                # Only points that have a function enter the table, so the others cost nothing. Weak, since a hook that
                # holds itself would keep alive whatever the function holds.
                setattr(self, point, lambda function=function: function(weak.trainer))

    def __call__(self, trainer: TrainerBase) -> None:
        assert self._at_boundary is not None
        self._at_boundary(trainer)
