"""Who is called where: the points of the loop."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable

from fastreid_lite.engine.hook_table import HookTable, overrides
from fastreid_lite.engine.hooks.base import HookBase

logger = logging.getLogger(__name__)


class PointsOfTheLoop:
    """The hooks of a trainer, and one method for each point that calls them there.

    Attributes:
        hook_table: the registered hooks, in the order of their turns.
    """

    def __init__(self) -> None:
        self.hook_table = HookTable()
        self._entered: list[HookBase] = []

    def register_hooks(self, hooks: Iterable[HookBase | None]) -> None:
        """Add hooks; None entries are left out.

        Raises:
            TypeError, ValueError: what :meth:`HookTable.add` refuses.
        """
        for hook in hooks:
            if hook is not None:
                self.hook_table.add(hook)
                hook.trainer = weakref.proxy(self)

    def before_train(self) -> None:
        """Call the hooks there. A hook whose ``before_train`` was completed gets its ``after_train``."""
        # What an interrupted run that is not gone on with has left behind gets no second one.
        self._entered = []
        for hook in self.hook_table.hooks:
            if overrides(hook, "before_train"):
                hook.before_train()
            self._entered.append(hook)

    def before_epoch(self) -> None:
        """Call the hooks there."""
        for method in self.hook_table.before_epoch:
            method()

    def before_step(self) -> None:
        """Call the hooks there."""
        for method in self.hook_table.before_step:
            method()

    def after_backward(self) -> None:
        """Call the hooks there: gradients are there, unscaled and not yet clipped."""
        for method in self.hook_table.after_backward:
            method()

    def after_step(self) -> None:
        """Call the hooks there."""
        for method in self.hook_table.after_step:
            method()

    def after_epoch(self) -> None:
        """Call the hooks there."""
        for method in self.hook_table.after_epoch:
            method()

    def after_train(self) -> list[BaseException]:
        """Call the hooks there, each guarded; what they raised comes back in order."""
        entered, self._entered = self._entered, []
        errors: list[BaseException] = []
        for hook in entered:
            try:
                if overrides(hook, "after_train"):
                    hook.after_train()
            except BaseException as error:
                logger.exception(f"after_train of the hook {hook.name!r} failed")
                errors.append(error)
        return errors
