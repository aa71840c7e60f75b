"""The loop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fastreid_lite.engine.agreement import Agreement
from fastreid_lite.engine.boundary import Boundary
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.loader import FedFromALoader
from fastreid_lite.engine.trainer_state import gather_state, restore_before_first_step, restore_hooks
from fastreid_lite.engine.triggers import Moment
from fastreid_lite.storage.event_storage import EventStorage
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)


class TrainerBase(FedFromALoader):
    """A loop over steps with hooks around them. A subclass defines :meth:`run_step` and keeps everything else.

    Attributes:
        iter: the step in progress, from 0: optimizer steps, which is what periods, schedules, logs and file names mean.
        start_iter, max_iter: this part of the run does the steps from ``start_iter`` to ``max_iter - 1``.
        epoch: the epoch in progress, from 0; ``epoch_step``: steps done in it; ``epoch_ended``: it ends with this step.
        storage: the numbers of this run.
        outcome: None while running; then "finished", "stopped" (by a signal), "failed" or "interrupted".
        stop_reason: the words given to :meth:`stop`.
        ending: True from the boundary at which it is known that the run ends there, finished.
    """

    def __init__(self) -> None:
        super().__init__()
        self.iter = self.start_iter = self.max_iter = 0
        self.epoch = self.epoch_step = 0
        self.epoch_ended = False
        self.storage = EventStorage(0)
        self.outcome: str | None = None
        self.stop_reason = ""
        self.ending = False
        self.agreement = Agreement()
        self.boundary = Boundary()
        self._loaded: dict[str, Any] | None = None
        self._epoch_begins = True
        self._cut_epoch = self._interrupted = self._running = False

    def register_hooks(self, hooks: Iterable[HookBase | None]) -> None:
        super().register_hooks(hooks)
        # One that joins in the midst of a run is asked from the next boundary on.
        self.boundary.due_step = 0

    def train(self, start_iter: int, max_iter: int) -> Mapping[str, Any] | None:
        """Do the steps from ``start_iter`` to ``max_iter - 1``, each exactly once whatever the length of the loader.

        Raises:
            ValueError: ``start_iter`` lies beyond ``max_iter``. And whatever a step or a hook raises: ``after_train``
                has run by then, with ``outcome`` "failed".
        """
        self._prepare(start_iter, max_iter)
        with self.storage:
            try:
                self._begin()
                while self.iter < self.max_iter and not self.ending:
                    if self._epoch_begins:
                        self._epoch_begins = False
                        self.before_epoch()
                    self.storage.iter = self.iter
                    self.before_step()
                    self.run_step()
                    self.after_step()
                    if self._count_step():
                        self.after_epoch()
                    self._at_boundary()
                    if self._interrupted or self.agreement.signal:
                        break
                self._end("stopped" if self.agreement.signal and not self.boundary.ended else "finished")
            except BaseException as error:
                self._end("failed", error)
                raise
        return None

    def run_step(self) -> None:
        """One optimizer step: fetch with :meth:`next_batch`, compute, call :meth:`after_backward`, update."""
        raise NotImplementedError(f"{type(self).__name__} must define run_step()")

    def stop(self, reason: str = "", *, everywhere: bool = False) -> None:
        """End the run, finished, at the boundary: with its last checkpoint, evaluation and log lines.

        With several processes it is enough that one asks; all stop at the same step, seconds later at the most.

        Args:
            reason: for the log.
            everywhere: every process calls this at the same step, so it acts at this step's boundary.
        """
        self.stop_reason = reason or self.stop_reason
        self.agreement.ask_to_stop(at_once=everywhere)

    def terminate_epoch(self) -> None:
        """End the epoch with this step; the next one begins at position 0 with a fresh iterator.

        At the boundary, where the step and its ``after_epoch`` are over, it is the next step that ends the epoch.
        """
        self._cut_epoch = True

    def interrupt(self) -> None:
        """Leave :meth:`train` after this step without ``after_train``; ``train(trainer.iter, max_iter)`` goes on."""
        self._interrupted = True

    @property
    def epoch_length(self) -> int | None:
        """Steps to an epoch; None while not known. Without a loader the run is one epoch."""
        return self.max_iter if self._feed is None else self._feed.epoch_length

    def moment(self, *, last: bool = False, done: int | None = None) -> Moment:
        """This boundary as triggers see it. ``done``: steps done; None for those up to the step in progress."""
        return Moment(
            iteration=self.iter + 1 if done is None else done,
            epoch=self.epoch + self.epoch_ended,
            epoch_step=0 if self.epoch_ended else self.epoch_step,
            epoch_length=self.epoch_length,
            epoch_ended=self.epoch_ended,
            seconds=self.agreement.seconds,
            last=last,
            clock_step=self.agreement.next_step,
            trainer=self,
            ended_step=self.epoch_step if self.epoch_ended else None,
        )

    def publish(self, *, joined: bool = True) -> None:
        """Make what was put into the storage readable, and speak with the other processes on the way.

        Args:
            joined: False after a failure, where the other processes may be gone.
        """
        if not joined:
            self.storage.publish(joined=False)
            return
        head = self.agreement.head(self.iter + 1, self.flagged())
        self._read_flags(self.storage.publish(head))

    def flagged(self) -> bool:
        """True where this process has seen something that is not finite and has not raised it; reads the device."""
        return False

    def report_not_finite(self) -> None:
        """Raise what :meth:`flagged` speaks of, on every process."""

    def _read_flags(self, summed: list[float]) -> None:
        self.agreement.read(summed)
        if self.agreement.flagged:
            self.report_not_finite()

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs, as plain containers and tensors. Collective: every process calls it.

        Raises:
            RuntimeError: a step is in progress, or done and its boundary not reached: such a state cannot be resumed.
        """
        if self._running and not self.boundary.standing:
            raise RuntimeError(
                f"state_dict() was called inside step {self.iter}, where its counters are not settled: give the hook "
                f"a trigger, so that it is called at the boundary, or call it outside train()"
            )
        if sum(comm.all_gather_object(self.flagged())):
            self.report_not_finite()
        return gather_state(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned: ``train(trainer.iter, max_iter)`` goes on with the next step."""
        self._loaded, self.outcome = state, None
        self.iter = self.start_iter = state["iteration"] + 1

    def _prepare(self, start_iter: int, max_iter: int) -> None:
        if start_iter > max_iter:
            raise ValueError(f"start_iter is {start_iter}, beyond max_iter {max_iter}: nothing is left to train")
        going_on = self.outcome == "interrupted" and start_iter == self.iter
        self.max_iter = max_iter
        self._interrupted = self.boundary.standing = False
        if not going_on:
            self.ending = self._cut_epoch = False
        if start_iter != self.iter or (self._loaded is None and not going_on):
            self._loaded, self.outcome, self.epoch_ended = None, None, False
            length = self.epoch_length
            self.epoch, self.epoch_step = divmod(start_iter, length) if length else (0, start_iter)
        self.iter = self.start_iter = start_iter

    def _begin(self) -> None:
        """Everything before the first step: hooks, turns that a resumed run still owes, position, random state."""
        going_on, self.outcome = self.outcome == "interrupted", None
        loaded, self._loaded = self._loaded, None
        if not going_on:
            self._epoch_begins = True
            self.agreement.start(self.iter)
            self.storage.iter = max(min(self.iter, self.max_iter - 1), 0)
            turns = restore_hooks(self, loaded) if loaded is not None else None
            self.before_train()
            logger.info(f"hooks in the order of their turns:\n{self.hook_table}")
            if turns is not None:
                self._take_owed_turns(*turns)
            if self.iter >= self.max_iter:
                logger.info(f"already at {self.iter} of {self.max_iter} iterations: nothing is left to train")
            elif self._feed is not None:
                self._feed.go_to(self.epoch, self.epoch_step)
            if loaded is not None:
                restore_before_first_step(loaded)
        self.boundary.arm(self, self.moment(done=self.iter))
        self._running = True

    def _take_owed_turns(self, epoch: int, epoch_step: int, epoch_ended: bool, ending: bool) -> None:
        """Stand at the boundary of the checkpoint again, for those whose turn had not come when it was written."""
        self.iter -= 1
        self.epoch, self.epoch_step, self.epoch_ended = epoch, epoch_step, epoch_ended
        self.storage.iter = max(self.iter, 0)
        self.ending = ending or self.iter + 1 >= self.max_iter
        self.boundary.take_turns(self)
        self._advance()

    def _count_step(self) -> bool:
        """Count the step that was done; True where the epoch ends with it."""
        self.epoch_step += 1
        length = self.epoch_length
        if self._cut_epoch:
            self.epoch_ended = True
        elif length is not None:
            self.epoch_ended = self.epoch_step >= length
        else:
            self.epoch_ended = self.at_end_of_loader()
        return self.epoch_ended

    def _at_boundary(self) -> None:
        """Ask and act where anything may be due; count on."""
        boundary = self.boundary
        if (
            self.iter + 1 >= boundary.due_step
            or self.epoch_ended
            or self.storage.serial != boundary.asked_serial
            or self.agreement.urgent
        ):
            self.agreement.meet(self.iter + 1, self.flagged)
            if self.agreement.flagged:
                self.report_not_finite()
            boundary.run(self)
        self._advance()

    def _advance(self) -> None:
        self.iter += 1
        if self.epoch_ended:
            self.epoch, self.epoch_step, self.epoch_ended, self._epoch_begins = self.epoch + 1, 0, False, True
            if self._cut_epoch:
                self._cut_epoch = False
                if self._feed is not None:
                    self._feed.go_to(self.epoch, 0)

    def _end(self, outcome: str, error: BaseException | None = None) -> None:
        """``after_train``, however the run ended. What it raises never hides ``error``."""
        self._running = False
        if self._interrupted and error is None:
            self.outcome = "interrupted"
            return
        self.outcome = outcome
        self.agreement.forget()
        errors = self.after_train()
        root = error if error is not None else (errors.pop(0) if errors else None)
        for later in errors if root is not None else []:
            # What add_note does, which Python 3.10 does not have.
            note = f"after_train also failed: {type(later).__name__}: {later}"
            root.__notes__ = [*getattr(root, "__notes__", []), note]  # type: ignore[union-attr]
        if root is not None and error is None:
            raise root
