"""What the processes of a run agree on: the stop, the clock, and when they speak next."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import torch

from fastreid_lite.utils import comm

# They speak at least this often, counted by the pace of the last stretch; half of the promised five seconds, since the
# pace may change.
_SECONDS = 2.5
_MOST_STEPS = 1000
# The signals that ask a run to stop; where processes got different ones, the first of these counts for all.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Agreement:
    """A few numbers that ride on the packed reduction, or travel alone where no log line is due for long.

    With one process nothing travels, and a request counts at once.

    Attributes:
        stop: True once all processes know that one of them asked to stop.
        signal: the number of the signal that one of them received, once all know; else 0.
        seconds: the run's clock, as rank 0 last told it; earlier parts of a resumed run included.
        next_step: steps done at which the processes speak next.
        flagged: one of them has seen something that is not finite, and all know.
        urgent: this process need not wait for the others: it is alone, or all have asked at the same step.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.forget()
        self.start(0)

    def forget(self) -> None:
        """Requests are of one run. They are forgotten where it ends: a signal may come before its first step."""
        self.stop = self.urgent = self._stop_asked = False
        self._signal_received = 0

    def start(self, steps_done: int) -> None:
        """Begin a part of a run: the clock goes on from where it was."""
        self.flagged = False
        self.signal = 0
        self._started, self._before = time.perf_counter(), self.seconds
        self._last = (self._before, steps_done)
        self._pace = 0.0
        self.next_step = steps_done + 1

    def ask_to_stop(self, *, at_once: bool) -> None:
        """This process wants the run to end. ``at_once``: every process asks at the same step."""
        self._stop_asked = True
        if at_once or not comm.is_distributed():
            self.stop = self.urgent = True

    def receive_signal(self, number: int) -> None:
        """This process got a signal that asks it to stop. Safe inside a signal handler: it only sets numbers."""
        self._signal_received = number
        if not comm.is_distributed():
            self.urgent = True

    def meet(self, steps_done: int, flagged: Callable[[], bool]) -> None:
        """At a boundary: speak with the others where it is time to. A collective there, and only there.

        Args:
            steps_done: the same on every process.
            flagged: asked where they speak: has this process seen something that is not finite?
        """
        if steps_done < self.next_step and not self.urgent:
            return
        if not comm.is_distributed():
            self.read(self.head(steps_done, False))
        elif steps_done >= self.next_step:
            head = self.head(steps_done, flagged())
            self.read(comm.all_reduce_sum(torch.tensor(head, dtype=torch.float64)).tolist())

    def head(self, steps_done: int, flagged: bool) -> list[float]:
        """What this process contributes to the sum: requests, and from rank 0 its clock and the next step."""
        leads = comm.is_main_process()
        now = self._before + time.perf_counter() - self._started
        then, step_then = self._last
        if steps_done > step_then:
            # Asked twice at one step, where a log line follows the question, the pace of the stretch before stands.
            self._pace = (now - then) / (steps_done - step_then)
            self._last = (now, steps_done)
        steps = min(max(int(_SECONDS / max(self._pace, 1e-9)), 1), _MOST_STEPS)
        return [
            float(flagged),
            float(self._stop_asked),
            *(float(self._signal_received == number) for number in STOP_SIGNALS),
            now if leads else 0.0,
            float(steps_done + steps) if leads else 0.0,
        ]

    def read(self, summed: list[float]) -> None:
        """Take over the sum of all processes' heads."""
        flags, stops, *senders, self.seconds, next_step = summed
        self.flagged = flags > 0
        self.stop = self.stop or stops > 0
        if not self.signal:
            self.signal = next((int(number) for number, count in zip(STOP_SIGNALS, senders) if count), 0)
        self.next_step = int(next_step)
