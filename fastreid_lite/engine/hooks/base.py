"""What a hook is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.triggers import Trigger

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

# Priorities. Higher comes first, equal ones in the order of their registration.
PRODUCE, CHANGE, READ, WRITE = 300, 200, 100, 0


class HookBase:
    """Something that happens around the steps of a run. A subclass overrides what it needs and nothing else.

    The loop that a hook lives in::

        before_train()
        while steps are left:
            before_epoch()                # where an epoch begins, and where a resumed run goes on inside one
            before_step()
            run_step()                    # the trainer's own; after_backward() inside it, before clipping
            after_step()
            after_epoch()                 # where an epoch ends
            boundary                      # hook(trainer) for each hook whose trigger fires, in order of priority
        after_train()                     # however the run ends: ask trainer.outcome

    A method that is not overridden costs nothing. ``trainer`` is the trainer, held weakly; it is there from the
    registration on. A hook with a ``trigger`` defines ``__call__``; where the run ends finished, ``finish`` is called
    at the last boundary too.

    Attributes:
        name: unique among the hooks of a trainer; the class's name where None. State is saved under it.
        trigger: when ``hook(trainer)`` is called, at boundaries; None for never.
        priority: PRODUCE (300) makes values: timers, evaluation. CHANGE (200) changes them. READ (100) reads them.
            WRITE (0) takes them to logs.
    """

    name: str | None = None
    trigger: Trigger | None = None
    priority: int = READ
    trainer: TrainerBase

    def before_train(self) -> None:
        """Once, before the first step of this part of the run."""

    def before_epoch(self) -> None:
        """Where an epoch begins, or a resumed run goes on inside one."""

    def before_step(self) -> None:
        """Before each step."""

    def after_backward(self) -> None:
        """Once a step: gradients are there, unscaled and not yet clipped."""

    def after_step(self) -> None:
        """After each step."""

    def after_epoch(self) -> None:
        """Where an epoch ends; not where the end of the run cuts one."""

    def after_train(self) -> None:
        """Once, if ``before_train`` was completed, however the run ends."""

    def __call__(self, trainer: TrainerBase) -> None:
        """At the boundaries where ``trigger`` fires."""
        raise NotImplementedError(f"{type(self).__name__} has a trigger, so it must define __call__(trainer)")

    def finish(self, trainer: TrainerBase) -> None:
        """At the last boundary of a run that ends finished, after ``__call__`` if that was due there."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs: plain containers, numbers, strings and tensors. The trigger's state is apart."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
