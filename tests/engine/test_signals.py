"""SIGTERM and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import CallbackHook, EvalHook, PeriodicCheckpointer, PeriodicWriter
from fastreid_lite.engine.signals import stop_on_signals
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder

RUN = str(Path(__file__).with_name("signal_run.py"))


@pytest.fixture
def received() -> Iterator[list[int]]:
    """Handlers that only write down, as whoever starts a run may have them."""
    found: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda number, frame: found.append(number))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def raises_at(number: int, step: int, point: str = "after_step") -> CallbackHook:
    return CallbackHook(
        name=f"{point} {step}", **{point: lambda trainer: trainer.iter == step and signal.raise_signal(number)}
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_first_signal_stops_at_the_boundary_with_a_checkpoint_and_is_raised_again(
    tmp_path: Path, received: list[int], number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    trainer, recorder, evaluated = CountingTrainer(PositionedLoader(4)), Recorder(), []
    outcomes: list[Any] = []
    trainer.register_hooks(
        [
            raises_at(number, 5),
            EvalHook(0, lambda: evaluated.append(1)),
            PeriodicCheckpointer(Checkpointer(tmp_path), 100),
            recorder,
            CallbackHook(after_train=lambda t: outcomes.append((t.outcome, t.iter, list(received)))),
        ]
    )
    with stop_on_signals(trainer):
        trainer.train(0, 50)
    assert trainer.steps == list(range(6))
    assert outcomes == [("stopped", 6, [])], "after_train comes before the signal is raised again"
    assert received == [number]
    assert evaluated == []
    assert recorder.seen[-2:] == [("after_step", 5), ("after_train", 6)]
    assert [path.name for path in tmp_path.glob("*.pth")] == ["model_iter_0000005.pth"]
    assert f"{signal.Signals(number).name}: stopping after this step" in capfd.readouterr().err


def test_what_was_due_at_that_boundary_is_owed_to_the_resumed_run(tmp_path: Path, received: list[int]) -> None:
    def make(*more: Any) -> tuple[CountingTrainer, list[int]]:
        own, evaluated = CountingTrainer(PositionedLoader(4)), []
        hooks = [EvalHook(3, lambda: evaluated.append(own.iter + 1)), PeriodicCheckpointer(Checkpointer(tmp_path), 100)]
        own.register_hooks([*hooks, *more])
        return own, evaluated

    first, before = make(raises_at(signal.SIGTERM, 5))
    with stop_on_signals(first):
        first.train(0, 12)
    assert before == [3]
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    second, after = make()
    second.load_state_dict(choice.state)
    second.train(second.iter, 12)
    assert after == [6, 9, 12]
    assert second.steps == list(range(6, 12))


def test_a_signal_in_the_midst_of_the_turns_gives_a_checkpoint_too(tmp_path: Path, received: list[int]) -> None:
    trainer = CountingTrainer(PositionedLoader(4))

    def evaluate() -> None:
        if trainer.iter == 5:
            signal.raise_signal(signal.SIGTERM)

    trainer.register_hooks(
        [EvalHook(3, evaluate), PeriodicCheckpointer(Checkpointer(tmp_path), 100), PeriodicWriter([], 2)]
    )
    with stop_on_signals(trainer):
        trainer.train(0, 50)
    assert trainer.outcome == "stopped"
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    assert choice.iteration == trainer.iter - 1


def test_a_second_signal_acts_at_once(tmp_path: Path) -> None:
    trainer, outcomes = CountingTrainer(), []
    trainer.register_hooks(
        [
            raises_at(signal.SIGINT, 5, "before_step"),
            CallbackHook(name="a person", after_step=lambda t: time.sleep(0.3) if t.iter == 5 else None),
            raises_at(signal.SIGINT, 5, "after_step"),
            PeriodicCheckpointer(Checkpointer(tmp_path), 100),
            CallbackHook(after_train=lambda t: outcomes.append((t.outcome, t.iter))),
        ]
    )
    with pytest.raises(KeyboardInterrupt), stop_on_signals(trainer):
        trainer.train(0, 50)
    assert outcomes == [("failed", 5)]
    assert list(tmp_path.iterdir()) == []


def test_the_same_signal_twice_within_a_moment_is_one(tmp_path: Path, received: list[int]) -> None:
    trainer = CountingTrainer()
    trainer.register_hooks(
        [
            raises_at(signal.SIGTERM, 5, "before_step"),
            raises_at(signal.SIGTERM, 5, "after_step"),
            PeriodicCheckpointer(Checkpointer(tmp_path), 100),
        ]
    )
    with stop_on_signals(trainer):
        trainer.train(0, 50)
    assert (trainer.outcome, trainer.iter) == ("stopped", 6)
    assert Checkpointer(tmp_path).find_resume() is not None


def test_a_signal_in_the_last_step_leaves_a_checkpoint_and_one_in_the_ending_undoes_nothing(
    tmp_path: Path, received: list[int]
) -> None:
    trainer = CountingTrainer()
    hooks = [raises_at(signal.SIGTERM, 9, "after_step"), PeriodicCheckpointer(Checkpointer(tmp_path / "a"), 100)]
    trainer.register_hooks(hooks)
    with stop_on_signals(trainer):
        trainer.train(0, 10)
    assert trainer.outcome == "stopped"
    choice = Checkpointer(tmp_path / "a").find_resume()
    assert choice is not None and choice.iteration == 9
    ending = CountingTrainer()
    ending.register_hooks(
        [
            EvalHook(0, lambda: signal.raise_signal(signal.SIGTERM)),
            PeriodicCheckpointer(Checkpointer(tmp_path / "b"), 100),
            PeriodicWriter([], 3),
        ]
    )
    with stop_on_signals(ending):
        ending.train(0, 4)
    assert ending.outcome == "finished" and (tmp_path / "b" / "model_final.pth").exists()


def test_a_signal_that_comes_too_late_to_stop_anything_is_raised_all_the_same(received: list[int]) -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([EvalHook(0, lambda: signal.raise_signal(signal.SIGTERM))])
    with stop_on_signals(trainer):
        trainer.train(0, 4)
    assert trainer.outcome == "finished"
    assert received == [signal.SIGTERM]


def test_handlers_are_put_back_however_the_block_ends(received: list[int]) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with stop_on_signals(CountingTrainer()):
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    with pytest.raises(OSError, match="gone"), stop_on_signals(CountingTrainer()):
        raise OSError("gone")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_outside_the_main_thread_nothing_is_changed() -> None:
    trainer = CountingTrainer()
    before = signal.getsignal(signal.SIGTERM)
    seen: list[bool] = []

    def work() -> None:
        with stop_on_signals(trainer):
            seen.append(signal.getsignal(signal.SIGTERM) is before)
            trainer.train(0, 3)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]
    assert trainer.outcome == "finished"


class Started:
    """A run in a process of its own, past its fifth step."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, RUN, str(folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "step\n"

    def end(self) -> tuple[int, str, float]:
        """Exit code, what it said, and how long that took."""
        start = time.monotonic()
        try:
            out, err = self.process.communicate(timeout=30)
        finally:
            self.process.kill()
        return self.process.returncode, out + err, time.monotonic() - start


def test_a_process_that_gets_sigterm_dies_of_it_and_can_be_resumed(tmp_path: Path) -> None:
    run = Started(tmp_path)
    run.process.send_signal(signal.SIGTERM)
    code, said, took = run.end()
    assert code == -signal.SIGTERM
    assert took < 5
    assert "outcome stopped" in said
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    assert f"outcome stopped {choice.iteration + 1}" in said
    assert not (tmp_path / "model_final.pth").exists()
    line = json.loads((tmp_path / "metrics.json").read_text())
    assert line["iteration"] == choice.iteration


@pytest.mark.slow
def test_two_times_ctrl_c_ends_the_process_within_seconds_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    run = Started(tmp_path, "1", "20")  # steps that take 20 seconds, so the first cannot end in time
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    run.process.send_signal(signal.SIGINT)
    code, said, took = run.end()
    assert code in (-signal.SIGINT, 130)
    assert took < 5
    assert "KeyboardInterrupt" in said
    assert "outcome failed" in said
    assert list(tmp_path.glob("*.pth")) == []
    for line in (tmp_path / "metrics.json").read_text().splitlines():
        json.loads(line)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_launcher_passes_a_signal_on_and_both_processes_stop_at_one_step(tmp_path: Path, number: int) -> None:
    run = Started(tmp_path, "2")
    run.process.send_signal(number)
    code, said, took = run.end()
    assert code in (-number, 128 + number)
    assert took < 20
    ends = re.findall(r"outcome [a-z]+ \d+(?=\n|outcome)", said)  # two processes may write into one line
    assert len(ends) == 2
    assert ends[0] == ends[1]
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    assert ends[0] == f"outcome stopped {choice.iteration + 1}"
