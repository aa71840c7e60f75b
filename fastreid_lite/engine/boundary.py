"""The boundary after a step: who is due, in which order, and what a checkpoint must know of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.hooks.checkpoint import CheckpointHook
from fastreid_lite.engine.triggers import Moment

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase


class Boundary:
    """Asks the triggers and gives the hooks their turn.

    First every trigger that reads only counters or clocks is asked, once. If a checkpoint is due it is written now,
    with the list of hooks that are due with it and of those still to be asked. Then the hooks take their turn in order
    of priority; a trigger that reads values is asked at its turn. A run that dies in its evaluation has therefore its
    checkpoint, and a resumed run takes the turns that are on the list first.

    Attributes:
        due_step: nothing needs to be asked before so many steps are done.
        turns: names of the hooks whose turn is still to come at this boundary; False: the trigger is still to be asked.
        standing: the trainer stands at a boundary, also where a turn has failed.
    """

    def __init__(self) -> None:
        self.standing = self.ended = False
        self.due_step: float = 0
        self.asked_serial = -1
        self.turns: dict[str, bool] = {}

    def run(self, trainer: TrainerBase) -> None:
        """All that happens after a step. Ends with ``trainer.ending`` set where the run ends here."""
        moment = trainer.moment()
        hooks = triggered(trainer)
        self.turns = {}
        for hook in hooks:
            trigger = hook.trigger
            assert trigger is not None
            if trigger.reads_values:
                self.turns[str(hook.name)] = False
            elif trigger(moment):
                self.turns[str(hook.name)] = True
        trainer.ending = trainer.ending or moment.iteration >= trainer.max_iter or trainer.agreement.stop
        self.take_turns(trainer)
        self.arm(trainer, trainer.moment())

    def take_turns(self, trainer: TrainerBase) -> None:
        """Give the hooks of ``turns`` their turn; then, or with it where it is known before, what the end asks for."""
        self.standing, self.ended = True, False
        hooks = trainer.hook_table.hooks
        self._save_first(trainer, hooks)
        if not trainer.agreement.signal:
            self._take_turns(trainer, hooks)
            self.ended = trainer.ending
        # A log line may have brought the news in the midst of the turns. An ending that is complete is not undone.
        if trainer.agreement.signal and not self.ended:
            self._each(hooks, CheckpointHook, lambda hook: hook.rescue(trainer))
        self.standing = False

    def _take_turns(self, trainer: TrainerBase, hooks: list[HookBase]) -> None:
        finishing, called = trainer.ending, set()
        if finishing:
            self._each(hooks, CheckpointHook, lambda hook: hook.finish(trainer))
        for hook in hooks:
            if self._turn(trainer, hook):
                called.add(hook.name)
            if finishing:
                self._finish(trainer, hook)
        trainer.ending = trainer.ending or trainer.agreement.stop
        if trainer.ending and not finishing:
            self._each(hooks, CheckpointHook, lambda hook: hook.finish(trainer))
            for hook in hooks:
                if hook.name not in called:
                    self._turn(trainer, hook)
                self._finish(trainer, hook)

    def _save_first(self, trainer: TrainerBase, hooks: list[HookBase]) -> None:
        for hook in hooks:
            # Off the list before it saves: a resumed run need not write the file that it comes from.
            if isinstance(hook, CheckpointHook) and self.turns.get(str(hook.name)):
                del self.turns[str(hook.name)]
                hook(trainer)

    def _turn(self, trainer: TrainerBase, hook: HookBase) -> bool:
        fires = self.turns.pop(str(hook.name), None)
        trigger = hook.trigger
        if trigger is None:
            return False
        # What the end changes is asked again there: the list says what is due whether or not the run ends.
        by_end = trainer.ending and trigger.reads_end and not isinstance(hook, CheckpointHook)
        if by_end or fires is False:
            fires = trigger(trainer.moment(last=trainer.ending))
        if not fires:
            return False
        hook(trainer)
        return True

    @staticmethod
    def _finish(trainer: TrainerBase, hook: HookBase) -> None:
        if not isinstance(hook, CheckpointHook):
            hook.finish(trainer)

    @staticmethod
    def _each(hooks: list[HookBase], kind: type[CheckpointHook], act: Callable[[CheckpointHook], None]) -> None:
        for hook in hooks:
            if isinstance(hook, kind):
                act(hook)

    def arm(self, trainer: TrainerBase, moment: Moment) -> None:
        """Work out before which step after ``moment`` nothing needs to be asked."""
        steps = [hook.trigger.next_iteration(moment) for hook in triggered(trainer) if hook.trigger is not None]
        self.asked_serial = trainer.storage.serial
        self.due_step = min([*steps, trainer.max_iter, trainer.agreement.next_step], default=math.inf)

    def state_dict(self) -> dict[str, Any]:
        """The turns still to come."""
        return {"turns": dict(self.turns)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self.turns = dict(state["turns"])


def triggered(trainer: TrainerBase) -> list[HookBase]:
    """The hooks that are called at boundaries, in order of their turn."""
    return [hook for hook in trainer.hook_table.hooks if hook.trigger is not None]
