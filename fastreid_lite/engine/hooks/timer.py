"""How long things take."""

from __future__ import annotations

import math
import time
from collections import deque

from fastreid_lite.engine.hooks.base import PRODUCE, HookBase


class IterationTimer(HookBase):
    """Puts, each time that numbers are published, the means over the steps since the last time.

    ``time``: seconds of a step, waiting for data included. ``data_time``: of that, waiting for the loader; the worst
    process's. ``hook_time``: seconds between two steps: hooks, logs, checkpoints, evaluation. ``images_per_second``: by
    the clock on the wall, hooks included. ``peak_memory``: MiB on the device, where it tells. ``eta_seconds``: what is
    left at the pace of the last 20 publications.

    Args:
        images_per_step: images of all processes in a step; None where that is not known: no rate is put then.
    """

    priority = PRODUCE

    def __init__(self, images_per_step: int | None = None) -> None:
        self._images_per_step = images_per_step
        self._recent: deque[tuple[float, int]] = deque(maxlen=20)

    def before_train(self) -> None:
        now = time.perf_counter()
        self._step_start = self._step_end = self._period_start = now
        self._step_seconds = 0.0
        self._steps = 0
        self._data_before = self.trainer.data_time
        storage = self.trainer.storage
        storage.set_kind("data_time", "max")
        storage.on_publish(self._put)

    def before_step(self) -> None:
        self._step_start = time.perf_counter()

    def after_step(self) -> None:
        self._step_end = end = time.perf_counter()
        self._step_seconds += end - self._step_start
        self._steps += 1

    def _put(self) -> None:
        if not self._steps:
            return
        trainer, steps, end = self.trainer, self._steps, self._step_end
        wall = max(end - self._period_start, 1e-9)
        waited = trainer.data_time - self._data_before
        self._recent.append((wall, steps))
        pace = sum(seconds for seconds, _ in self._recent) / sum(count for _, count in self._recent)
        put = trainer.storage.put_scalar
        put("time", self._step_seconds / steps)
        put("data_time", waited / steps)
        put("hook_time", max(wall - self._step_seconds, 0.0) / steps)
        if self._images_per_step is not None:
            put("images_per_second", self._images_per_step * steps / wall, smoothing_hint=False)
        left = max(trainer.max_iter - trainer.storage.iter - 1, 0)
        runtime = getattr(trainer, "runtime", None)
        memory = None if runtime is None else runtime.peak_memory()
        if memory is not None:
            put("peak_memory", memory, smoothing_hint=False)
        put("eta_seconds", math.ceil(pace * left), smoothing_hint=False)
        self._period_start, self._step_seconds, self._steps = end, 0.0, 0
        self._data_before = trainer.data_time

    def after_train(self) -> None:
        if self.trainer.outcome != "finished":
            self._put()  # the line that covers what was done since the last one
        self.trainer.storage.off_publish(self._put)
