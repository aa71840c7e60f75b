"""SIGTERM and Ctrl-C: ask the run to stop at the next boundary, then let the signal do what it does."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from fastreid_lite.engine.agreement import STOP_SIGNALS

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

logger = logging.getLogger(__name__)

# A cluster signals every process of a job, and a launcher passes on what it got: the same news twice within a moment.
_ONE_PRESS = 0.2


@contextmanager
def stop_on_signals(trainer: TrainerBase) -> Iterator[None]:
    """While the block runs, a first SIGTERM or Ctrl-C asks ``trainer`` to stop; a second acts at once.

    Nothing is saved inside the handler: it sets a number, and the boundary of the step writes the checkpoint. After the
    block the handlers found at the start are put back and the signal is raised again, so that whoever started the
    process sees it die of it. Outside the main thread, where Python allows no handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found: dict[int, Any] = {}
    received: list[int] = []
    first_at = 0.0

    def put_back() -> None:
        for number, handler in found.items():
            signal.signal(number, handler)
        found.clear()

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first_at
        if received and time.monotonic() - first_at < _ONE_PRESS:
            return
        if received:
            put_back()
            os.kill(os.getpid(), number)
            return
        received.append(number)
        first_at = time.monotonic()
        trainer.agreement.receive_signal(number)
        # Written without the logger: a handler may interrupt it while it holds its lock.
        os.write(2, f"\n{signal.Signals(number).name}: stopping after this step; again to stop at once\n".encode())

    for wanted in STOP_SIGNALS:
        found[wanted] = signal.signal(wanted, handle)
    try:
        yield
    finally:
        put_back()
    _die_of_it(trainer, received)


def _die_of_it(trainer: TrainerBase, received: list[int]) -> None:
    """Raise the signal again, whether or not the run had the time to stop for it; nothing where there was none."""
    stopped = trainer.outcome == "stopped"
    if not received and not stopped:
        return
    number = received[0] if received else trainer.agreement.signal
    done = "stopped" if stopped else str(trainer.outcome)
    logger.info(
        f"{done} at iteration {trainer.iter}, and {signal.Signals(number).name} was received"
        f"{'; --resume goes on from there' if stopped else ''}"
    )
    os.kill(os.getpid(), number)
