"""Who is called where: resolved once, looked up at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tabulate import tabulate

from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.triggers import Trigger, as_trigger

Methods = tuple[Callable[[], None], ...]
POINTS = ("before_train", "before_epoch", "before_step", "after_backward", "after_step", "after_epoch", "after_train")


class HookTable:
    """The registered hooks, and for each point the methods to call there, in order.

    ``before_train`` and ``after_train`` are not here: they are called hook by hook, since who completed the one is
    owed the other.
    """

    def __init__(self) -> None:
        self.hooks: list[HookBase] = []
        self.before_epoch: Methods = ()
        self.before_step: Methods = ()
        self.after_backward: Methods = ()
        self.after_step: Methods = ()
        self.after_epoch: Methods = ()

    def add(self, hook: HookBase) -> None:
        """Put ``hook`` in its place.

        Raises:
            TypeError: it is no HookBase, or has a trigger and no ``__call__``, or one that is no trigger.
            ValueError: two hooks that keep state have one name; or the same hook is registered twice.
        """
        if not isinstance(hook, HookBase):
            raise TypeError(f"a hook is a HookBase, got {hook!r}; wrap a function in CallbackHook")
        if any(hook is other for other in self.hooks):
            raise ValueError(f"the hook {self.name(hook)!r} is registered already")
        if hook.trigger is not None and not overrides(hook, "__call__"):
            raise TypeError(f"{type(hook).__name__} has a trigger, so it must define __call__(trainer)")
        if hook.trigger is not None and not isinstance(hook.trigger, Trigger):
            hook.trigger = as_trigger(hook.trigger)
        if not isinstance(hook.priority, int):
            raise TypeError(f"the priority of {self.name(hook)!r} is {hook.priority!r}, expected a whole number")
        self._name(hook)
        # sorted() is stable: equal priorities stay in the order of registration.
        self.hooks = sorted([*self.hooks, hook], key=lambda entry: -entry.priority)
        self.before_epoch = self._at("before_epoch")
        self.before_step = self._at("before_step")
        self.after_backward = self._at("after_backward")
        self.after_step = self._at("after_step")
        self.after_epoch = self._at("after_epoch")

    def _at(self, point: str) -> Methods:
        return tuple(getattr(hook, point) for hook in self.hooks if overrides(hook, point))

    def name(self, hook: HookBase) -> str:
        """The unique name of ``hook``."""
        return hook.name or type(hook).__name__

    def _name(self, hook: HookBase) -> None:
        taken = {self.name(other): other for other in self.hooks}
        wanted = self.name(hook)
        if wanted not in taken:
            hook.name = wanted
            return
        if is_stateful(hook) or is_stateful(taken[wanted]):
            raise ValueError(
                f"two hooks are named {wanted!r} and at least one of them keeps state, which would be lost: "
                f"give one another name (hook.name = ...)"
            )
        number = 2
        while f"{wanted}_{number}" in taken:
            number += 1
        hook.name = f"{wanted}_{number}"

    def __str__(self) -> str:
        rows = [
            (
                hook.priority,
                hook.name,
                "" if hook.trigger is None else describe(hook.trigger),
                " ".join(point for point in POINTS if overrides(hook, point)),
            )
            for hook in self.hooks
        ]
        return tabulate(rows, headers=("priority", "hook", "boundary", "points"))


def overrides(hook: HookBase, method: str) -> bool:
    """True where ``hook`` defines ``method`` itself, in its class or on the instance."""
    return method in vars(hook) or getattr(type(hook), method) is not getattr(HookBase, method)


def is_stateful(hook: HookBase) -> bool:
    """True where ``hook`` or its trigger has something to save."""
    return overrides(hook, "state_dict") or (hook.trigger is not None and bool(hook.trigger.state_dict()))


def describe(trigger: Any) -> str:
    """A trigger in a few letters, for the table."""
    parts = getattr(trigger, "triggers", None)
    if parts:
        return f"{type(trigger).__name__}({', '.join(describe(part) for part in parts)})"
    shown = [
        str(value)
        for key, value in vars(trigger).items()
        if not key.startswith("_") and isinstance(value, int | float | str)
    ]
    return f"{type(trigger).__name__}({', '.join(shown)})"
