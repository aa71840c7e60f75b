from __future__ import annotations

import io
import logging
import os
import pty
import re
from collections.abc import Iterator
from typing import TextIO

import pytest

from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.writers import CommonMetricPrinter, ProgressBarWriter


class Terminal:
    """A pseudo terminal, and the screen that a person would see on it."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.stream: TextIO = os.fdopen(theirs, "w", encoding=encoding)
        self.encoding = encoding
        self.received = ""

    def screen(self) -> list[str]:
        """The lines on the screen, by what carriage return, backspace and newline do."""
        self.stream.flush()
        data = b""
        try:
            while chunk := os.read(self._ours, 65536):
                data += chunk
        except BlockingIOError:
            pass
        self.received += data.decode(self.encoding)
        lines, column = [""], 0
        for char in self.received:
            if char == "\r":
                column = 0
            elif char == "\n":
                lines, column = [*lines, ""], 0
            elif char == "\b":
                column -= 1
            else:
                line = lines[-1].ljust(column)
                lines[-1], column = line[:column] + char + line[column + 1 :], column + 1
        return [line.rstrip() for line in lines]

    def close(self) -> None:
        self.stream.close()
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def logger(terminal: Terminal) -> Iterator[logging.Logger]:
    made = logging.getLogger("fastreid_lite")
    handler = logging.StreamHandler(terminal.stream)
    made.addHandler(handler)
    level, made.level = made.level, logging.INFO
    made.manager._clear_cache()  # type: ignore[attr-defined]
    yield made
    made.removeHandler(handler)
    made.level = level
    made.manager._clear_cache()  # type: ignore[attr-defined]


def step(storage: EventStorage, *writers: ProgressBarWriter | CommonMetricPrinter, iteration: int, loss: float) -> None:
    storage.iter = iteration
    storage.put_scalar("total_loss", loss)
    storage.put_scalar("eta_seconds", 83.0, smoothing_hint=False)
    storage.publish()
    for writer in writers:
        writer.write()


def test_the_bar_is_drawn_over_itself(terminal: Terminal) -> None:
    writer = ProgressBarWriter(600, terminal.stream)
    with EventStorage(0) as storage:
        step(storage, writer, iteration=199, loss=5.1234)
        assert terminal.screen() == [f" 33% {'█' * 10}{'░' * 20} 200/600  eta 0:01:23  total_loss 5.123"]
        step(storage, writer, iteration=599, loss=1.0)
        assert terminal.screen() == [f"100% {'█' * 30} 600/600  eta 0:01:23  total_loss 1"]
        writer.close()
    assert terminal.screen()[1:] == [""]


def test_log_lines_stay_whole_and_the_bar_stays_below_them(terminal: Terminal, logger: logging.Logger) -> None:
    printer, writer = CommonMetricPrinter(100), ProgressBarWriter(100, terminal.stream)
    with EventStorage(0) as storage:
        step(storage, printer, writer, iteration=19, loss=5.0)
        logging.getLogger("fastreid_lite.engine").info("saved")
        assert terminal.screen() == ["eta 0:01:23  iter  19/100  total_loss 5.000", "saved", ""]
        step(storage, printer, writer, iteration=39, loss=4.0)
        screen = terminal.screen()
        assert screen[:3] == [
            "eta 0:01:23  iter  19/100  total_loss 5.000",
            "saved",
            "eta 0:01:23  iter  39/100  total_loss 4.000",
        ]
        assert len(screen) == 4 and screen[3].startswith(" 40% ")
        writer.close()
        logger.info("after")
    assert terminal.screen()[4:] == ["after", ""]
    assert not logger.handlers[-1].filters


def test_on_anything_but_a_terminal_it_is_silent() -> None:
    stream = io.StringIO()
    writer = ProgressBarWriter(10, stream)
    with EventStorage(0) as storage:
        step(storage, writer, iteration=3, loss=1.0)
        writer.close()
    assert stream.getvalue() == ""


def test_a_terminal_of_few_letters_gets_plain_ones() -> None:
    terminal = Terminal("ascii")
    writer = ProgressBarWriter(2, terminal.stream)
    with EventStorage(0) as storage:
        step(storage, writer, iteration=0, loss=1.0)
    assert terminal.screen()[0].startswith(f" 50% {'#' * 15}{'.' * 15} 1/2")
    terminal.close()


def test_a_bar_never_wraps(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 24)))
    writer = ProgressBarWriter(600, terminal.stream)
    with EventStorage(0) as storage:
        step(storage, writer, iteration=199, loss=1.0)
    assert len(terminal.screen()[0]) == 19


def test_a_terminal_that_goes_away_does_not_end_the_run(terminal: Terminal) -> None:
    writer = ProgressBarWriter(600, terminal.stream)
    terminal.stream.close()
    with EventStorage(0) as storage:
        step(storage, writer, iteration=199, loss=1.0)
        step(storage, writer, iteration=299, loss=1.0)
        writer.close()


def test_it_writes_only_when_numbers_are_written(terminal: Terminal) -> None:
    writer = ProgressBarWriter(600, terminal.stream)
    with EventStorage(0) as storage:
        storage.put_scalar("a", 1.0)
        writer.write()
        assert terminal.screen() == [""]
        storage.publish()
        writer.write()
        terminal.screen()
        before = terminal.received
        writer.write()
        terminal.screen()
        assert terminal.received == before != ""


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("max_iter is -1, expected the number of steps, 0 or more")):
        ProgressBarWriter(-1)
