"""The line that people read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from fastreid_lite.storage.event_storage import Value, get_event_storage
from fastreid_lite.storage.writers.base import EventWriter

logger = logging.getLogger(__name__)

#: known numbers: the word on the line, and how the number is written
_FORMATS: dict[str, tuple[str, Callable[[float], str]]] = {
    "time": ("time", "{:.4f}".format),
    "data_time": ("data_time", "{:.4f}".format),
    "hook_time": ("hook_time", "{:.1e}".format),
    "lr": ("lr", "{:.2e}".format),
    "images_per_second": ("img/s", "{:.0f}".format),
    "peak_memory": ("mem", "{:.0f}M".format),
}
_LEADING = ("eta_seconds", "iteration", "epoch")


class CommonMetricPrinter(EventWriter):
    """Logs one line a period: time left, step, losses, times, learning rate, images per second, memory.

    The numbers are the published ones that every writer gets. Results (what keeps its newest value, such as a mAP)
    follow on a line of their own when they are new. Other numbers are left to the other writers.

    Args:
        max_iter: steps of the whole run, for the line; None where not known.

    Raises:
        ValueError: ``max_iter`` is negative.
    """

    def __init__(self, max_iter: int | None = None) -> None:
        super().__init__()
        if max_iter is not None and max_iter < 0:
            raise ValueError(f"max_iter is {max_iter}, expected the number of steps (0 or more) or None")
        self.max_iter = max_iter
        self._widths: dict[str, int] = {}

    def write_values(self, values: dict[str, Value]) -> None:
        """Log ``values``: at most one line for the step, and one for the results of each step that has some."""
        storage = get_event_storage()
        step: dict[str, Value] = {}
        others: dict[str, Value] = {}
        results: dict[int, dict[str, Value]] = {}
        for name, value in values.items():
            if name in _FORMATS or name in _LEADING or "loss" in name.lower():
                step[name] = value
            elif storage.is_smoothed(name):
                others[name] = value
            else:
                results.setdefault(value.iteration, {})[name] = value
        if step:
            # What a hook or a model puts besides stands in the line of its step, and makes none by itself.
            logger.info(self._step_line({**step, **others}))
        for iteration, found in results.items():
            numbers = "  ".join(f"{name} {short(value.value)}" for name, value in found.items())
            logger.info(f"iter {self._of_max(iteration)}  {numbers}")

    def _step_line(self, values: dict[str, Value]) -> str:
        iteration = max(value.iteration for value in values.values())
        words = []
        if "eta_seconds" in values:
            words.append(("eta", clock(values["eta_seconds"].value)))
        words.append(("iter", self._of_max(iteration)))
        if "epoch" in values:
            words.append(("epoch", f"{values['epoch'].value:.0f}"))
        losses = [name for name in values if name not in _FORMATS and name not in _LEADING]
        losses.sort(key=lambda name: (name != "total_loss", "loss" not in name.lower(), values[name].serial))
        words += [(name, f"{values[name].value:#.4g}".rstrip(".")) for name in losses]
        words += [(word, write(values[name].value)) for name, (word, write) in _FORMATS.items() if name in values]
        return "  ".join(f"{word} {self._aligned(word, text)}" for word, text in words)

    def _of_max(self, iteration: int) -> str:
        if self.max_iter is None:
            return str(iteration)
        return f"{iteration:>{len(str(self.max_iter))}}/{self.max_iter}"

    def _aligned(self, word: str, text: str) -> str:
        """``text``, as wide as the widest one of this word so far, so that lines stand under each other."""
        width = self._widths[word] = max(self._widths.get(word, 0), len(text))
        return text.rjust(width)


def short(value: float) -> str:
    """Four digits that count: 5.123, 0.9, 12.35, 1.2e-05.

    >>> short(5.1234), short(0.9), short(1.2e-05)
    ('5.123', '0.9', '1.2e-05')
    """
    return f"{value:.4g}"


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(83.4), clock(float("inf"))
    ('0:01:23', 'unknown')
    """
    if not 0 <= seconds < timedelta.max.total_seconds():
        return "unknown"
    return str(timedelta(seconds=int(seconds)))
