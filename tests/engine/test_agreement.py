"""What processes agree on: one collective a period, one step to stop at, never more than five seconds of silence."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import agreement as agreement_module
from fastreid_lite.engine.agreement import Agreement
from fastreid_lite.engine.hooks import CallbackHook, EvalHook, PeriodicCheckpointer, PeriodicWriter
from fastreid_lite.engine.signals import stop_on_signals
from fastreid_lite.utils import comm
from tests.engine.toys import CountingTrainer
from tests.processes import run_processes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    own = SimpleNamespace(now=50.0)
    own.perf_counter = lambda: own.now
    monkeypatch.setattr(agreement_module, "time", own)
    return own


@pytest.mark.parametrize("pace", [0.0001, 0.01, 0.3, 1.0, 2.4, 4.0])
@pytest.mark.parametrize("log_period", [None, 20])
def test_processes_speak_at_least_every_five_seconds(
    clock: SimpleNamespace, pace: float, log_period: int | None
) -> None:
    own = Agreement()
    own.start(0)
    spoke = [clock.now]
    for done in range(1, 3000):
        clock.now += pace
        logs = log_period is not None and done % log_period == 0
        if done >= own.next_step:
            own.meet(done, lambda: False)
            spoke.append(clock.now)
        if logs:  # a log line at the same step speaks again
            own.read(own.head(done, False))
            spoke.append(clock.now)
        assert own.next_step > done
        assert own.next_step - done <= 1000
        assert own.next_step == done + 1 or (own.next_step - done) * pace <= 5.0
    gaps = [after - before for before, after in zip(spoke, spoke[1:])]
    assert max(gaps) <= max(5.0, 1.01 * pace)


def test_the_clock_of_a_resumed_run_goes_on(clock: SimpleNamespace) -> None:
    own = Agreement()
    own.start(0)
    clock.now += 10
    own.meet(4, lambda: False)
    assert own.seconds == 10
    other = Agreement()
    other.seconds = own.seconds
    clock.now += 1000
    other.start(5)
    clock.now += 3
    other.meet(6, lambda: False)
    assert other.seconds == 13


def test_signals_of_several_processes_become_one_that_all_know() -> None:
    heads = []
    for number in (signal.SIGINT, signal.SIGTERM, 0):
        one = Agreement()
        if number:
            one.receive_signal(number)
        heads.append(one.head(7, False))
    summed = [sum(column) for column in zip(*heads)]
    for _ in range(3):
        own = Agreement()
        own.read(summed)
        assert own.signal == signal.SIGTERM


def _counted(calls: list[int]) -> None:
    """Count the collectives from here on."""
    plain, gathering = comm.all_reduce_sum, comm.all_gather_object

    def reduce(tensor: Any) -> Any:
        calls.append(1)
        return plain(tensor)

    def gather(value: Any) -> Any:
        calls.append(100)
        return gathering(value)

    comm.all_reduce_sum, comm.all_gather_object = reduce, gather


def count_collectives(steps: int, period: int) -> list[int]:
    trainer = CountingTrainer()
    trainer.register_hooks([PeriodicWriter([], period)])
    calls: list[int] = []
    _counted(calls)
    trainer.train(0, steps)
    return calls


def stop_on_one_rank(asks: int, by: str) -> tuple[int, str | None, list[int], list[int]]:
    """Rank ``asks`` alone wants to stop at step 5."""
    trainer = CountingTrainer()
    evaluated: list[int] = []
    handled: list[int] = []

    def ask(own: Any) -> None:
        if comm.get_rank() == asks and own.iter == 5:
            if by == "stop":
                own.stop("enough")
            else:
                signal.raise_signal(signal.SIGTERM)

    trainer.register_hooks(
        [CallbackHook(after_step=ask), EvalHook(0, lambda: evaluated.append(own_iter(trainer))), PeriodicWriter([], 10)]
    )
    signal.signal(signal.SIGTERM, lambda number, frame: handled.append(number))
    with stop_on_signals(trainer):
        trainer.train(0, 10_000)
    return trainer.iter, trainer.outcome, evaluated, handled


def own_iter(trainer: Any) -> int:
    return int(trainer.iter)


def one_period(folder: str) -> Any:
    """Both questions in one group, so that one start of processes answers them."""
    stops = [stop_on_one_rank(asks, "stop") for asks in (0, 1)]
    signals = [stop_on_one_rank(asks, "signal") for asks in (0, 1)]
    rescued = rescue(folder)
    everywhere = stop_everywhere()
    seconds = clocks()
    return stops, signals, rescued, everywhere, seconds, count_collectives(100, 20)


def rescue(folder: str) -> tuple[int, int]:
    trainer = CountingTrainer()
    trainer.register_hooks(
        [
            PeriodicCheckpointer(Checkpointer(folder), 1000),
            CallbackHook(
                after_step=lambda t: t.iter == 5 and comm.get_rank() == 1 and signal.raise_signal(signal.SIGTERM)
            ),
            PeriodicWriter([], 10),
        ]
    )
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with stop_on_signals(trainer):
        trainer.train(0, 10_000)
    comm.synchronize()
    choice = Checkpointer(folder).find_resume()
    assert choice is not None
    return trainer.iter, choice.iteration


def stop_everywhere() -> list[int]:
    trainer = CountingTrainer()
    trainer.register_hooks([CallbackHook(after_step=lambda t: t.iter == 3 and t.stop(everywhere=True))])
    trainer.train(0, 50)
    return trainer.steps


def clocks() -> list[float]:
    import time

    trainer, found = CountingTrainer(), []
    time.sleep(0.1 * comm.get_rank())
    note = CallbackHook(trigger=(1, "iteration"), at_boundary=lambda t: found.append(t.agreement.seconds))
    trainer.register_hooks([note, PeriodicWriter([], 2)])
    trainer.train(0, 6)
    return found


def test_two_processes_agree(tmp_path: Path) -> None:
    first, second = run_processes(one_period, 2, str(tmp_path))
    for ours, theirs in zip(first[0], second[0]):
        assert ours == theirs, "all stop at the same step, though one alone asked"
        iteration, outcome, evaluated, handled = ours
        assert 6 <= iteration <= 10, "at the next log line, which carries the request"
        assert (outcome, evaluated, handled) == ("finished", [iteration - 1], [])
    for ours, theirs in zip(first[1], second[1]):
        assert ours == theirs, "the signal is raised again in every process"
        assert ours[1:] == ("stopped", [], [signal.SIGTERM])
        assert 6 <= ours[0] <= 10
    assert first[2] == second[2]
    assert first[2][0] == first[2][1] + 1, "the step of the checkpoint is done"
    assert first[3] == second[3] == [0, 1, 2, 3]
    assert first[4] == second[4], "one clock"
    # One for each log line; before them the first step, where the clock starts and a name is new: it is exchanged.
    for calls in (first[5], second[5]):
        assert calls.count(1) == 1 + 100 // 20 + 1
        assert calls.count(100) <= 1
