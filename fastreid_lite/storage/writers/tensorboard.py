"""Numbers for TensorBoard."""

from __future__ import annotations

import importlib.util
import logging
import os
from typing import TYPE_CHECKING, Any

from fastreid_lite.storage.event_storage import Value, get_event_storage
from fastreid_lite.storage.writers.base import EventWriter

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger(__name__)


class TensorboardXWriter(EventWriter):
    """Writes every published number into an event file under ``log_dir``; the file is made at the first number.

    After a resume the file says which step it starts from, and TensorBoard hides what older files hold from there on.

    Args:
        log_dir: the folder of the event files; made where it is not there.
        flush_secs: seconds after which numbers are on disk at the latest.

    Raises:
        ImportError: the package tensorboard is not installed.
        ValueError: ``flush_secs`` is not positive.
    """

    def __init__(self, log_dir: str | os.PathLike[str], flush_secs: int = 30) -> None:
        super().__init__()
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError(
                "TensorboardXWriter needs the package tensorboard, which is not installed: "
                "pip install 'fastreid_lite[tensorboard]'"
            )
        if flush_secs <= 0:
            raise ValueError(f"flush_secs is {flush_secs}, expected a positive number of seconds")
        self.log_dir = os.fspath(log_dir)
        self.flush_secs = flush_secs
        self._writer: SummaryWriter | None = None
        self._next_step = 0
        self._purge_step: int | None = None
        self._failed = False

    def write(self) -> None:
        """Write what was published since the last call, every publication."""
        storage = get_event_storage()
        found = storage.published_since(self._seen)
        self._seen = storage.serial
        self._add(found)

    def write_values(self, values: dict[str, Value]) -> None:
        """Write ``values``."""
        self._add(list(values.items()))

    def close(self) -> None:
        """Write what is left and close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except OSError as error:
                self._give_up(error)

    def state_dict(self) -> dict[str, Any]:
        """How far this writer is, and the step after the newest one that it has written."""
        return {**super().state_dict(), "next_step": self._next_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there: what is in older files from that step on will be hidden."""
        super().load_state_dict(state)
        self.close()
        self._next_step = self._purge_step = state["next_step"]

    def _add(self, found: list[tuple[str, Value]]) -> None:
        if self._failed or not found:
            return
        try:
            writer = self._open()
            for name, value in found:
                writer.add_scalar(name, value.value, value.iteration)
                self._next_step = max(self._next_step, value.iteration + 1)
        except OSError as error:
            self._give_up(error)

    def _open(self) -> SummaryWriter:
        if self._writer is None:
            # Importing it takes a quarter of a second, which only those who use it should pay.
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(self.log_dir, purge_step=self._purge_step, flush_secs=self.flush_secs)
            self._purge_step = None
        return self._writer

    def _give_up(self, error: OSError) -> None:
        """Its thread has ended with the error, so nothing more can be written."""
        if not self._failed:
            logger.warning(
                f"cannot write events into {self.log_dir}: {error.strerror or error}; training goes on "
                "without TensorBoard"
            )
        self._failed = True
