"""How far the run is, on the last line of a terminal."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from fastreid_lite.storage.event_storage import Value
from fastreid_lite.storage.writers.base import EventWriter
from fastreid_lite.storage.writers.console import clock, short
from fastreid_lite.utils.logger import ROOT_NAME

_BAR_WIDTH = 30
# Where the terminal does not tell its width, as some do while they are being attached to.
_COLUMNS = 80


class ProgressBarWriter(EventWriter):
    """Draws a bar below the log lines of a terminal, with the time left and the loss.

    It is drawn when numbers are written and taken away just before a log line, so lines stay whole. Put it last among
    the writers: the line of an earlier one would take it away again. On anything but a terminal it does nothing, as
    the line of :class:`CommonMetricPrinter` says the same.

    Args:
        max_iter: steps of the whole run.
        stream: where to draw; None for standard error.

    Raises:
        ValueError: ``max_iter`` is negative.
    """

    def __init__(self, max_iter: int, stream: TextIO | None = None) -> None:
        super().__init__()
        if max_iter < 0:
            raise ValueError(f"max_iter is {max_iter}, expected the number of steps, 0 or more")
        self.max_iter = max_iter
        self._stream = sys.stderr if stream is None else stream
        self._active = self._stream.isatty()
        self._drawn = 0
        self._handlers: list[logging.Handler] = []

    def write_values(self, values: dict[str, Value]) -> None:
        """Draw the bar anew, up to the newest step of ``values``."""
        if not self._active:
            return
        self._watch_log_lines()
        done = min(max(value.iteration for value in values.values()) + 1, self.max_iter)
        share = done / self.max_iter if self.max_iter else 1.0
        words = [f"{share:4.0%} {self._bar(share)} {done}/{self.max_iter}"]
        if "eta_seconds" in values:
            words.append(f"eta {clock(values['eta_seconds'].value)}")
        if "total_loss" in values:
            words.append(f"total_loss {short(values['total_loss'].value)}")
        self._draw("  ".join(words))

    def close(self) -> None:
        """Leave the bar where it is and go on below it."""
        for handler in self._handlers:
            handler.removeFilter(self._make_room)
        self._handlers = []
        if self._drawn:
            self._drawn = 0
            self._emit("\n")

    def _bar(self, share: float) -> str:
        filled = int(share * _BAR_WIDTH)
        full, empty = "█░"
        try:
            (full + empty).encode(self._stream.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            full, empty = "#."
        return full * filled + empty * (_BAR_WIDTH - filled)

    def _draw(self, text: str) -> None:
        # A line as wide as the terminal would wrap, and a wrapped line cannot be taken away.
        text = text[: self._columns() - 1]
        self._emit("\r" + text.ljust(self._drawn) + "\b" * max(self._drawn - len(text), 0))
        self._drawn = len(text)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS

    def _watch_log_lines(self) -> None:
        """Have every handler that writes on a terminal ask for room first; handlers may come and go during a run."""
        for logger in (logging.getLogger(ROOT_NAME), logging.getLogger()):
            for handler in logger.handlers:
                stream = getattr(handler, "stream", None)
                if handler not in self._handlers and stream is not None and stream.isatty():
                    handler.addFilter(self._make_room)
                    self._handlers.append(handler)

    def _make_room(self, record: logging.LogRecord) -> bool:
        """Take the bar away; every record passes."""
        if self._drawn:
            self._emit("\r" + " " * self._drawn + "\r")
            self._drawn = 0
        return True

    def _emit(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The terminal is gone; the run is not about it.
            self._active = False
