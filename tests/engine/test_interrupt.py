"""A run that is left in the midst and gone on with."""

from __future__ import annotations

from pathlib import Path

from fastreid_lite.engine.hooks import CallbackHook
from tests.engine.ending_toys import Outcome, full
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder


def test_an_interrupt_leaves_train_without_after_train_and_goes_on_without_beginning_again() -> None:
    whole, part = CountingTrainer(PositionedLoader(4)), CountingTrainer(loader := PositionedLoader(4))
    expected, recorder = Recorder(), Recorder()
    whole.register_hooks([expected])
    part.register_hooks([recorder, CallbackHook(after_step=lambda t: t.iter in (1, 3, 4) and t.interrupt())])
    whole.train(0, 10)
    for iteration in (2, 4, 5):
        part.train(part.iter, 10)
        assert (part.outcome, part.iter) == ("interrupted", iteration)
        assert recorder.seen[-1][0] in ("after_step", "after_epoch")
    part.train(part.iter, 10)
    assert part.outcome == "finished"
    assert recorder.seen == expected.seen
    assert loader.served == [divmod(step, 4) for step in range(10)]


def test_an_interrupt_writes_nothing(tmp_path: Path) -> None:
    trainer = full(tmp_path, CountingTrainer(), [])
    trainer.register_hooks([CallbackHook(after_step=lambda t: t.iter == 3 and t.interrupt())])
    trainer.train(0, 10)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_at_the_last_step_the_ending_is_not_done_twice(tmp_path: Path) -> None:
    evaluations: list[int] = []
    trainer, outcome = full(tmp_path, CountingTrainer(), evaluations), Outcome()
    trainer.register_hooks([outcome, CallbackHook(after_step=lambda t: t.iter == 5 and t.interrupt())])
    trainer.train(0, 6)
    assert outcome.found == []
    trainer.train(6, 6)
    assert outcome.found == [("finished", 6)]
    assert evaluations == [5]


def test_interrupted_together_with_a_stop_the_run_that_goes_on_does_no_further_step() -> None:
    trainer, outcome = CountingTrainer(), Outcome()
    trainer.register_hooks([outcome, CallbackHook(after_step=lambda t: t.iter == 5 and (t.interrupt(), t.stop()))])
    trainer.train(0, 9)
    trainer.train(trainer.iter, 9)
    assert trainer.steps == list(range(6))
    assert outcome.found == [("finished", 6)]


def test_a_state_can_be_taken_and_loaded_where_a_run_was_interrupted() -> None:
    trainer, recorder = CountingTrainer(PositionedLoader(4)), Recorder()
    trainer.register_hooks([recorder, CallbackHook(after_step=lambda t: t.iter == 3 and t.interrupt())])
    trainer.train(0, 10)
    state = trainer.state_dict()
    assert state["iteration"] == 3
    other = CountingTrainer(PositionedLoader(4))
    other.load_state_dict(state)
    other.train(other.iter, 6)
    assert other.steps == [4, 5]
    trainer.load_state_dict(state)
    trainer.train(trainer.iter, 6)
    points = [point for point, _ in recorder.seen]
    assert points.count("before_train") == 2, "a loaded state begins a part of its own"
    assert points.count("after_train") == 1
