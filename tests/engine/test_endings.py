"""However a run ends: after_train for who began, the root cause first, and an outcome that hooks can ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import (
    CallbackHook,
    EvalHook,
    PeriodicCheckpointer,
    PeriodicWriter,
)
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.storage.writers import JSONWriter
from tests.engine.ending_toys import Outcome, full, lines
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder, toy_trainer


class UserError(Exception):
    """What a user raises."""


class Fails(HookBase):
    def __init__(self, point: str, words: str = "root", *, at: int = 2, name: str | None = None) -> None:
        self.name = name
        setattr(self, point, lambda: self._raise(point, words, at))

    def _raise(self, point: str, words: str, at: int) -> None:
        if self.trainer.iter == at or point.endswith("train"):
            raise UserError(words)


@pytest.mark.parametrize("point", ["before_step", "after_backward", "after_step", "before_epoch", "after_epoch"])
def test_an_exception_anywhere_reaches_the_caller_and_every_hook_gets_its_after_train(point: str) -> None:
    trainer, outcome, recorder = CountingTrainer([1, 2, 3, 4]), Outcome(), Recorder()
    at = {"before_epoch": 4, "after_epoch": 3}.get(point, 2)
    trainer.register_hooks([outcome, Fails(point, at=at), recorder])
    with pytest.raises(UserError, match="root"):
        trainer.train(0, 9)
    assert trainer.outcome == "failed"
    assert outcome.found == [("failed", at)]
    assert recorder.seen[-1] == ("after_train", at)
    assert [point for point, _ in recorder.seen].count("after_train") == 1


def test_after_train_is_owed_only_to_hooks_whose_before_train_was_completed() -> None:
    trainer, early, late = CountingTrainer(), Recorder(), Recorder()
    failing = Fails("before_train")
    failing.after_train = lambda: pytest.fail("it was never begun")  # type: ignore[method-assign]
    trainer.register_hooks([early, failing, late])
    with pytest.raises(UserError, match="root"):
        trainer.train(0, 3)
    assert [point for point, _ in early.seen] == ["before_train", "after_train"]
    assert late.seen == []


def test_an_error_in_one_after_train_stops_no_other_and_hides_nothing() -> None:
    trainer, last = CountingTrainer(), Outcome()
    trainer.register_hooks(
        [Fails("after_step"), Fails("after_train", "first", name="a"), Fails("after_train", "second", name="b"), last]
    )
    with pytest.raises(UserError, match="root") as caught:
        trainer.train(0, 5)
    assert caught.value.__notes__ == [
        "after_train also failed: UserError: first",
        "after_train also failed: UserError: second",
    ]
    assert last.found == [("failed", 2)]


def test_where_only_after_train_fails_the_first_error_is_raised_and_the_run_has_failed() -> None:
    trainer, last = CountingTrainer(), Outcome()
    trainer.register_hooks([Fails("after_train", "first", name="a"), Fails("after_train", "second", name="b"), last])
    with pytest.raises(UserError, match="first") as caught:
        trainer.train(0, 5)
    assert caught.value.__notes__ == ["after_train also failed: UserError: second"]
    assert last.found == [("finished", 5)]
    assert trainer.outcome == "failed"


def test_ctrl_c_in_a_step_is_not_swallowed_and_hooks_end() -> None:
    class Pressed(CountingTrainer):
        def run_step(self) -> None:
            super().run_step()
            if self.iter == 3:
                raise KeyboardInterrupt

    trainer, outcome = Pressed(), Outcome()
    trainer.register_hooks([outcome])
    with pytest.raises(KeyboardInterrupt):
        trainer.train(0, 9)
    assert outcome.found == [("failed", 3)]


def test_a_run_that_reaches_max_iter_is_finished() -> None:
    trainer, outcome = CountingTrainer(), Outcome()
    trainer.register_hooks([outcome])
    trainer.train(0, 5)
    assert outcome.found == [("finished", 5)]


def test_stop_ends_at_the_boundary_with_iter_one_beyond_and_is_finished() -> None:
    trainer, outcome, recorder = CountingTrainer(), Outcome(), Recorder()
    trainer.register_hooks([CallbackHook(before_step=lambda t: t.iter == 3 and t.stop("enough")), outcome, recorder])
    trainer.train(0, 9)
    assert trainer.steps == [0, 1, 2, 3]
    assert outcome.found == [("finished", 4)]
    assert trainer.stop_reason == "enough"
    assert recorder.seen[-2:] == [("finish", 3), ("after_train", 4)]


def test_a_stop_of_one_run_does_not_end_the_next() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([CallbackHook(before_step=lambda t: t.iter == 3 and t.stop("enough"))])
    trainer.train(0, 9)
    trainer.train(4, 9)
    assert trainer.steps == list(range(9))


def test_an_epoch_cut_by_the_end_of_the_run_never_ends() -> None:
    for end in (_stop_at(1), None):
        trainer, recorder = CountingTrainer([1, 2, 3, 4]), Recorder()
        trainer.register_hooks([end, recorder])
        trainer.train(0, 9 if end else 2)
        assert "after_epoch" not in [point for point, _ in recorder.seen]


def _stop_at(step: int) -> CallbackHook:
    return CallbackHook(after_step=lambda trainer: trainer.iter == step and trainer.stop())


def test_a_stop_gives_final_evaluation_model_final_and_the_last_line(tmp_path: Path) -> None:
    evaluations: list[int] = []
    trainer = full(tmp_path, CountingTrainer(), evaluations)
    trainer.register_hooks([_stop_at(6)])
    trainer.train(0, 50)
    assert evaluations == [6]
    assert [path.name for path in tmp_path.glob("*.pth")] == ["model_final.pth"]
    (line,) = lines(tmp_path)
    assert line["iteration"] == 6
    assert line["score"] == 56.0
    assert line["loss"] == 3.0, "the mean of 0 to 6"


@pytest.mark.parametrize("asks", ["before_step", "after_step", "after_epoch", "boundary", "evaluation"])
def test_nothing_is_evaluated_twice_at_one_step(tmp_path: Path, asks: str) -> None:
    evaluations: list[int] = []
    trainer = full(tmp_path, CountingTrainer([1, 2, 3]), evaluations, period=6)
    if asks == "evaluation":
        hook = CallbackHook(trigger=lambda t: t.iter == 5, at_boundary=lambda t: t.stop(), priority=0)
    elif asks == "boundary":
        hook = CallbackHook(trigger=(6, "iteration"), at_boundary=lambda t: t.stop(), priority=400)
    else:
        hook = CallbackHook(**{asks: lambda t: t.iter == 5 and t.stop()})
    trainer.register_hooks([hook])
    trainer.train(0, 50)
    assert evaluations == [5]
    assert trainer.iter == 6
    assert (tmp_path / "model_final.pth").is_file()
    final = [line for line in lines(tmp_path) if "score" in line]
    assert len(final) == 1
    assert final[0]["iteration"] == 5


def test_a_run_with_both_due_at_the_last_step_evaluates_and_logs_it_once(tmp_path: Path) -> None:
    evaluations: list[int] = []
    full(tmp_path, toy_trainer(), evaluations, period=5, log=5).train(0, 10)
    assert evaluations == [4, 9]
    found = lines(tmp_path)
    assert [line["iteration"] for line in found] == [4, 9]
    assert all({"score", "lr", "time", "total_loss"} <= set(line) for line in found)


def test_a_user_exception_in_after_step_flushes_the_log_and_leaves_what_was_there(tmp_path: Path) -> None:
    evaluations: list[int] = []
    trainer, outcome = full(tmp_path, toy_trainer(PositionedLoader(20)), evaluations), Outcome()
    seen: list[float] = []
    trainer.register_hooks(
        [outcome, CallbackHook(after_step=lambda t: seen.append(t.storage.latest()["total_loss"][0]))]
    )
    trainer.register_hooks([Fails("after_step", at=7)])
    with pytest.raises(UserError, match="root"):
        trainer.train(0, 50)
    assert outcome.found == [("failed", 7)]
    last = lines(tmp_path)[-1]
    assert last["iteration"] == 7
    assert last["total_loss"] == pytest.approx(sum(seen) / 8)
    assert {"lr", "time", "data_time"} <= set(last)
    assert list(tmp_path.glob("*.pth")) == []
    assert evaluations == []
    # The epoch that was cut is not counted as done.
    assert (trainer.epoch, trainer.epoch_step) == (0, 7)


def test_an_exception_at_the_first_step_shows_itself_and_closing_is_silent(tmp_path: Path) -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([PeriodicWriter([JSONWriter(tmp_path / "metrics.json")], 20), Fails("before_step", at=0)])
    with pytest.raises(UserError, match="root") as caught:
        trainer.train(0, 7)
    assert not hasattr(caught.value, "__notes__")
    assert not (tmp_path / "metrics.json").exists()


def test_values_put_in_after_train_are_written_once_under_the_last_step(tmp_path: Path) -> None:
    trainer = full(tmp_path, CountingTrainer(), [])
    trainer.register_hooks([CallbackHook(after_train=lambda t: t.storage.put_scalar("farewell", 4.0), priority=300)])
    trainer.train(0, 7)
    found = lines(tmp_path)
    assert [line["iteration"] for line in found if "farewell" in line] == [6]
    assert [line["iteration"] for line in found if "loss" in line] == [6], "the partial period is flushed, once"
    assert found[0]["loss"] == 3.0


def test_an_evaluation_that_raises_at_the_end_leaves_the_final_weights_on_disk(tmp_path: Path) -> None:
    trainer = toy_trainer()

    def evaluate() -> dict[str, float]:
        raise UserError("in the evaluation")

    trainer.register_hooks([EvalHook(0, evaluate), PeriodicCheckpointer(Checkpointer(tmp_path), 100)])
    with pytest.raises(UserError, match="in the evaluation"):
        trainer.train(0, 4)
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    assert (choice.path.name, choice.iteration) == ("model_final.pth", 3)
    for name, value in trainer.model.state_dict().items():
        assert choice.state["model"][name].equal(value)


def test_a_stopped_run_that_died_in_its_ending_completes_it_and_trains_no_further(tmp_path: Path) -> None:
    def make(*, dies: bool) -> CountingTrainer:
        own = CountingTrainer(PositionedLoader(20))

        def evaluate() -> dict[str, float]:
            if dies:
                raise UserError("in the evaluation")
            return {"score": 1.0}

        own.register_hooks([EvalHook(0, evaluate), PeriodicCheckpointer(Checkpointer(tmp_path), 0), _stop_at(5)])
        return own

    with pytest.raises(UserError):
        make(dies=True).train(0, 50)
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    again = make(dies=False)
    again.load_state_dict(choice.state)
    again.train(again.iter, 50)
    assert again.steps == []
    assert again.outcome == "finished"
    assert again.storage.published()["score"][:2] == (1.0, 5)
    longer = make(dies=False)
    longer.load_state_dict(choice.state)
    longer.train(longer.iter, 51)
    assert longer.steps[:1] == [6], "given more steps, it goes on"


def test_a_run_that_is_at_its_end_trains_nothing_says_so_and_no_hook_trips(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    evaluations: list[int] = []
    full(tmp_path, toy_trainer(), evaluations).train(0, 10)
    before = (tmp_path / "model_final.pth").read_bytes()
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    again = full(tmp_path, toy_trainer(), evaluations)
    again.load_state_dict(choice.state)
    with caplog.at_level("INFO"):
        again.train(again.iter, 10)
    assert "already at 10 of 10 iterations: nothing is left to train" in caplog.text
    assert again.outcome == "finished"
    assert (tmp_path / "model_final.pth").read_bytes() == before
    shorter = full(tmp_path, toy_trainer(), evaluations)
    shorter.load_state_dict(choice.state)
    with pytest.raises(ValueError, match="start_iter is 10, beyond max_iter 8"):
        shorter.train(shorter.iter, 8)


@pytest.mark.parametrize(("period", "evaluated", "files"), [(0, [6], ["model_final.pth"]), (-1, [], [])])
def test_a_period_of_0_is_only_at_the_end_and_a_negative_one_never(
    tmp_path: Path, period: int, evaluated: list[int], files: list[str]
) -> None:
    evaluations: list[int] = []
    full(tmp_path, CountingTrainer(), evaluations, period=period, log=period).train(0, 7)
    assert evaluations == evaluated
    assert [path.name for path in tmp_path.glob("*.pth")] == files
    assert (tmp_path / "metrics.json").exists() == (period == 0)
    if period == 0:
        assert [line["iteration"] for line in lines(tmp_path)] == [6]
