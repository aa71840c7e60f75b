"""Checkpoints: at periods, at the end, at the best value, and when the run is told to go."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastreid_lite.checkpoint.names import BEST_NAME, FINAL_NAME, SUFFIX, periodic_name
from fastreid_lite.engine.hooks.base import READ, HookBase
from fastreid_lite.engine.triggers import Trigger, as_trigger, every
from fastreid_lite.engine.value_triggers import BestValue
from fastreid_lite.utils import comm

if TYPE_CHECKING:
    from fastreid_lite.checkpoint.checkpointer import Checkpointer
    from fastreid_lite.engine.train_loop import TrainerBase

logger = logging.getLogger(__name__)


class CheckpointHook(HookBase):
    """A hook that writes full states. It belongs on every process: making a state joins them, rank 0 writes it.

    Args:
        checkpointer: where and how files are written.
    """

    priority = READ

    def __init__(self, checkpointer: Checkpointer) -> None:
        self.checkpointer = checkpointer

    def save(self, trainer: TrainerBase, name: str, *, publish: bool = True, periodic: bool = False) -> None:
        """Write the trainer's state as ``name``. An error of rank 0 is raised on every process.

        Args:
            publish: the pointer file names this checkpoint from then on.
            periodic: the file may be deleted when newer ones are safe.
        """
        state = trainer.state_dict()
        error: Exception | None = None
        if comm.is_main_process():
            try:
                path = self.checkpointer.save(name, state, publish=publish, periodic=periodic)
                logger.info(f"checkpoint of iteration {trainer.iter}: {path}")
            except Exception as caught:
                error = caught
        failure = comm.broadcast_object(None if error is None else f"{type(error).__name__}: {error}")
        if error is not None:
            raise error
        if failure is not None:
            raise RuntimeError(f"rank 0 could not write the checkpoint {name}: {failure}")

    def rescue(self, trainer: TrainerBase) -> None:
        """Write a checkpoint from which a run that is told to go can be resumed, if this step's is not there yet."""


class PeriodicCheckpointer(CheckpointHook):
    """A checkpoint every ``period``, named by its epoch or step, and ``model_final`` at the end.

    Args:
        checkpointer: where and how files are written.
        period: steps; or a trigger, or ``(n, "epoch")``. 0: only at the end; negative: not even there.
    """

    def __init__(self, checkpointer: Checkpointer, period: int | Trigger | tuple[float, str] = 0) -> None:
        super().__init__(checkpointer)
        count = period if isinstance(period, int) else period[0] if isinstance(period, tuple) else 1
        self.trigger = every(period) if isinstance(period, int) else as_trigger(period)
        self._at_end = count >= 0
        self._saved: int | None = None
        self._finished: int | None = None

    def before_train(self) -> None:
        # What another run, that this one does not go on with, has written at such a step.
        if self._saved is not None and self._saved >= self.trainer.iter:
            self._saved = None
        if self._finished is not None and self._finished >= self.trainer.iter:
            self._finished = None

    def __call__(self, trainer: TrainerBase) -> None:
        if self._saved != trainer.iter:
            self._saved = trainer.iter
            name = periodic_name(trainer.epoch, trainer.iter, trainer.epoch_ended)
            self.save(trainer, name, periodic=True)

    def rescue(self, trainer: TrainerBase) -> None:
        self(trainer)

    def finish(self, trainer: TrainerBase) -> None:
        if self._at_end and self._finished != trainer.iter:
            self._finished = trainer.iter
            self.save(trainer, FINAL_NAME)

    def final_file(self, iteration: int) -> str | None:
        """The name of the file that the ending after step ``iteration`` wrote; None where it wrote none."""
        return f"{FINAL_NAME}{SUFFIX}" if self._finished == iteration else None

    def state_dict(self) -> dict[str, Any]:
        return {"saved": self._saved, "finished": self._finished, "files": self.checkpointer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved, self._finished = state["saved"], state["finished"]
        self.checkpointer.load_state_dict(state["files"])


class BestCheckpointer(CheckpointHook):
    """``model_best`` whenever a published value beats all before it; NaN never does, an equal one neither.

    Args:
        checkpointer: where and how files are written.
        key: a published name, such as "Market1501/metric".
        mode: "max" or "min".

    Attributes:
        iteration: the step of the best value so far; None before there is one.
    """

    def __init__(self, checkpointer: Checkpointer, key: str, mode: str = "max") -> None:
        super().__init__(checkpointer)
        self.trigger: BestValue = BestValue(key, mode)
        self.iteration: int | None = None

    def __call__(self, trainer: TrainerBase) -> None:
        self.iteration = trainer.iter
        logger.info(f"best {self.trigger.key} so far: {self.trigger.best:.4f} at iteration {trainer.iter}")
        self.save(trainer, BEST_NAME, publish=False)

    def state_dict(self) -> dict[str, Any]:
        return {"iteration": self.iteration}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.iteration = state["iteration"]
