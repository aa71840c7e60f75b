"""How long things take: steps, data, hooks and what is left, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fastreid_lite.engine.hooks import CallbackHook, IterationTimer, PeriodicWriter
from fastreid_lite.engine.hooks import timer as timer_module
from tests.engine.toys import CountingTrainer


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    from fastreid_lite.engine import loader

    own = Clock()
    monkeypatch.setattr(timer_module, "time", own)
    monkeypatch.setattr(loader, "time", own)
    return own


def run(clock: Clock, steps: int, *, fetch: float, compute: float, boundary: float, period: int = 5) -> Any:
    class Works(CountingTrainer):
        def run_step(self) -> None:
            super().run_step()
            clock.now += compute

    def slow() -> Iterator[int]:
        batch = 0
        while True:
            clock.now += fetch
            yield (batch := batch + 1)

    trainer = Works(slow(), epoch_length=10**6)
    work = CallbackHook(trigger=(1, "iteration"), at_boundary=lambda _: setattr(clock, "now", clock.now + boundary))
    trainer.register_hooks([IterationTimer(8), PeriodicWriter([], period), work])
    trainer.train(0, steps)
    return trainer


def test_step_data_and_hook_time_and_throughput_are_reported_each_by_itself(clock: Clock) -> None:
    trainer = run(clock, 10, fetch=0.25, compute=0.5, boundary=0.125)
    history = trainer.storage.history
    assert [value for value, _ in history("data_time")] == [0.25, 0.25]
    assert [value for value, _ in history("time")] == [0.75, 0.75]
    # Between the steps of a period lie its boundaries, the last one excepted, which lies before the next period.
    assert [value for value, _ in history("hook_time")] == [0.1, 0.125]
    assert [value for value, _ in history("images_per_second")] == [8 * 5 / 4.25, 8 * 5 / 4.375]


def test_what_is_left_counts_hooks_and_waiting_and_goes_to_zero(clock: Clock) -> None:
    trainer = run(clock, 20, fetch=0.25, compute=0.5, boundary=0.25)
    left = [value for value, _ in trainer.storage.history("eta_seconds")]
    assert left == pytest.approx([15, 10, 5, 0], abs=1)


def test_the_rate_follows_a_run_that_becomes_slower(clock: Clock) -> None:
    trainer = CountingTrainer()
    pace = CallbackHook(before_step=lambda t: setattr(clock, "now", clock.now + (1 if t.iter < 100 else 3)))
    trainer.register_hooks([IterationTimer(), PeriodicWriter([], 5), pace])
    trainer.train(0, 300)
    left = {iteration: value for value, iteration in trainer.storage.history("eta_seconds")}
    assert left[219] == pytest.approx(3 * 80, rel=0.02)


def test_a_boundary_without_new_steps_puts_nothing(clock: Clock) -> None:
    trainer = run(clock, 5, fetch=0.0, compute=1.0, boundary=0.0)
    assert len(trainer.storage.history("time")) == 1


def test_the_first_line_after_a_resume_counts_only_what_was_done_since(clock: Clock) -> None:
    trainer = run(clock, 5, fetch=0.0, compute=1.0, boundary=0.0)
    clock.now += 1000
    trainer.train(5, 10)
    assert trainer.storage.history("time")[-1] == (1.0, 9)
    assert trainer.storage.history("images_per_second")[-1] == (8.0, 9)
    assert trainer.storage.history("data_time")[-1] == (0.0, 9)
