"""One counter, seen from every point: the table of the design, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.triggers import every
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder


class Counters(HookBase):
    """Writes down (point, iter, epoch, steps done at the boundary)."""

    trigger = every(1)

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def _row(self, point: str) -> None:
        self.rows.append((point, self.trainer.iter, self.trainer.epoch))

    def before_train(self) -> None:
        self._row("before_train")

    def before_epoch(self) -> None:
        self._row("before_epoch")

    def before_step(self) -> None:
        assert self.trainer.storage.iter == self.trainer.iter
        self._row("before_step")

    def after_step(self) -> None:
        self._row("after_step")

    def after_epoch(self) -> None:
        self._row("after_epoch")

    def after_train(self) -> None:
        self._row("after_train")

    def __call__(self, trainer: Any) -> None:
        moment = trainer.moment()
        self.rows.append(("boundary", trainer.iter, trainer.epoch, moment.iteration, moment.epoch))


def test_every_row_of_the_counter_table() -> None:
    trainer, counters = CountingTrainer(PositionedLoader(2)), Counters()
    trainer.register_hooks([counters])
    trainer.train(0, 3)
    assert counters.rows == [
        ("before_train", 0, 0),
        ("before_epoch", 0, 0),
        ("before_step", 0, 0), ("after_step", 0, 0), ("boundary", 0, 0, 1, 0),
        ("before_step", 1, 0), ("after_step", 1, 0), ("after_epoch", 1, 0), ("boundary", 1, 0, 2, 1),
        ("before_epoch", 2, 1),
        ("before_step", 2, 1), ("after_step", 2, 1), ("boundary", 2, 1, 3, 1),
        ("after_train", 3, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 5])
def test_a_start_in_the_midst_stands_in_epoch_start_over_length(start: int) -> None:
    trainer, counters, loader = None, Counters(), PositionedLoader(2)
    trainer = CountingTrainer(loader)
    trainer.register_hooks([counters])
    trainer.train(start, 6)
    assert counters.rows[0] == ("before_train", start, start // 2)
    assert counters.rows[1] == ("before_epoch", start, start // 2)
    assert trainer.steps == list(range(start, 6))
    assert loader.served[0] == divmod(start, 2)


@pytest.mark.parametrize("done", range(1, 6))
def test_a_resumed_run_sees_the_same_counters_before_train_as_one_that_starts_there(done: int) -> None:
    first = CountingTrainer(PositionedLoader(2))
    saved: list[Any] = []
    first.register_hooks([_saver(saved)])
    first.train(0, 6)
    state = saved[done - 1]
    assert state["iteration"] == done - 1
    second, counters, loader = None, Counters(), PositionedLoader(2)
    second = CountingTrainer(loader)
    second.register_hooks([counters])
    second.load_state_dict(state)
    assert second.iter == done
    second.train(second.iter, 6)
    assert counters.rows[:3] == [
        ("before_train", done, done // 2), ("before_epoch", done, done // 2), ("before_step", done, done // 2)
    ]  # fmt: skip
    assert counters.rows[-1] == ("after_train", 6, 3)
    assert loader.served == [divmod(step, 2) for step in range(done, 6)]


def _saver(saved: list[Any]) -> HookBase:
    from tests.engine.toys import Turn

    return Turn("saver", every(1), [], act=lambda trainer: saved.append(trainer.state_dict()))


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 7])
def test_every_step_runs_exactly_once_whatever_the_length_of_the_loader(steps: int) -> None:
    for loader in (None, [1], [1, 2, 3], PositionedLoader(4), iter(range(100))):
        trainer = CountingTrainer(loader)
        trainer.train(0, steps)
        assert trainer.steps == list(range(steps))
        assert trainer.iter == steps


def test_a_start_beyond_the_end_names_both_numbers() -> None:
    trainer, recorder = CountingTrainer(), Recorder()
    trainer.register_hooks([recorder])
    with pytest.raises(ValueError, match="start_iter is 10, beyond max_iter 8"):
        trainer.train(10, 8)
    assert recorder.seen == [], "nothing was begun, so nothing is ended"


def test_the_state_before_and_after_a_run_counts_the_steps_that_are_done() -> None:
    trainer = CountingTrainer(PositionedLoader(2))
    assert trainer.state_dict()["iteration"] == -1
    trainer.train(0, 3)
    state = trainer.state_dict()
    assert state["iteration"] == 2
    other = CountingTrainer(loader := PositionedLoader(2))
    other.load_state_dict(state)
    other.train(other.iter, 5)
    assert other.steps == [3, 4]
    assert loader.served == [(1, 1), (2, 0)]


def test_a_state_that_could_not_be_resumed_is_refused() -> None:
    class Saves(HookBase):
        def after_step(self) -> None:
            self.trainer.state_dict()

    trainer = CountingTrainer()
    trainer.register_hooks([Saves()])
    with pytest.raises(RuntimeError, match=r"state_dict\(\) was called inside step 0.*give the hook a trigger"):
        trainer.train(0, 2)


def test_after_an_error_iter_is_the_step_that_failed() -> None:
    class Fails(CountingTrainer):
        def run_step(self) -> None:
            super().run_step()
            if self.iter == 4:
                raise KeyError("lost")

    trainer = Fails()
    with pytest.raises(KeyError, match="lost"):
        trainer.train(0, 9)
    assert trainer.iter == 4
    assert trainer.outcome == "failed"


def test_a_second_part_goes_on_where_the_first_ended() -> None:
    trainer = CountingTrainer(loader := PositionedLoader(4))
    trainer.train(0, 6)
    trainer.train(6, 9)
    assert trainer.steps == list(range(9))
    assert loader.served == [divmod(step, 4) for step in range(9)]


def test_a_trainer_can_be_run_again_from_the_start() -> None:
    trainer, recorder = CountingTrainer(loader := PositionedLoader(4)), Recorder(trigger=every(3))
    trainer.register_hooks([recorder])
    trainer.train(0, 6)
    once = list(recorder.seen)
    trainer.train(0, 6)
    assert recorder.seen == once * 2
    assert loader.served == [divmod(step, 4) for step in range(6)] * 2
