"""Numbers to logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.hooks.base import WRITE, HookBase
from fastreid_lite.engine.triggers import Trigger, as_trigger, every

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase
    from fastreid_lite.storage.writers import EventWriter


class PeriodicWriter(HookBase):
    """Publishes what was put, and lets writers write it: every ``period`` steps, at the end, and what is left then.

    It belongs on every process, since publishing joins them; the writers belong on rank 0 only.

    Args:
        writers: empty on the other processes.
        period: steps between two log lines, or a trigger. 0: only at the end; negative: no line at all.
    """

    priority = WRITE

    def __init__(self, writers: Sequence[EventWriter], period: int | Trigger = 20) -> None:
        self._writers = list(writers)
        self.trigger = every(period) if isinstance(period, int) else as_trigger(period)
        self._called_at: int | None = None
        self._silent = isinstance(period, int) and period < 0

    def __call__(self, trainer: TrainerBase) -> None:
        self._called_at = trainer.iter
        trainer.publish()
        self._write()

    def finish(self, trainer: TrainerBase) -> None:
        if self._called_at != trainer.iter:
            self(trainer)

    def before_train(self) -> None:
        self._called_at = None

    def after_train(self) -> None:
        # After a failure the other processes may be gone: what this one knows is written, and nobody is waited for.
        self.trainer.publish(joined=self.trainer.outcome == "finished")
        self._write()
        for writer in self._writers:
            writer.close()

    def start_anew(self) -> None:
        """Begin the logs anew: a log of another run that stands in the folder is moved aside, never deleted."""
        for writer in self._writers:
            writer.start_anew()

    def _write(self) -> None:
        for writer in [] if self._silent else self._writers:
            writer.write()

    def state_dict(self) -> dict[str, Any]:
        return {"writers": [writer.state_dict() for writer in self._writers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for writer, part in zip(self._writers, state["writers"]):
            writer.load_state_dict(part)
