"""What happens between two steps: who is asked, who is due, and what a checkpoint knows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import BestCheckpointer, EvalHook, PeriodicCheckpointer
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.moment import Moment
from fastreid_lite.engine.triggers import At, AtEnd, Function, Once, Trigger, every
from fastreid_lite.engine.value_triggers import BestValue
from tests.engine.toys import CountingTrainer, PositionedLoader, Turn

Seen = list[tuple[str, int]]


class Asked(Trigger):
    """Never fires; counts the questions."""

    def __init__(self, due: float = 1) -> None:
        self.at: list[int] = []
        self._due = due

    def __call__(self, moment: Moment) -> bool:
        self.at.append(moment.iteration)
        return False

    def next_iteration(self, moment: Moment) -> float:
        return moment.iteration + self._due


def test_every_trigger_is_asked_once_a_boundary() -> None:
    trainer, trigger = CountingTrainer(PositionedLoader(2)), Asked()
    trainer.register_hooks([Turn("asked", trigger, [])])
    trainer.train(0, 6)
    assert trigger.at == [1, 2, 3, 4, 5, 6]


def test_nothing_is_asked_before_it_may_fire() -> None:
    trainer, trigger = CountingTrainer(), Asked(1000)
    trainer.register_hooks([Turn("asked", trigger, [])])
    trainer.agreement.head = _quiet(trainer.agreement.head)  # type: ignore[method-assign]
    trainer.train(0, 50)
    assert trigger.at == [1, 50], "at the first boundary, where the clock starts, and at the last"


def _quiet(head: Any) -> Any:
    return lambda *args: [*head(*args)[:-1], 10_000.0]


def test_triggers_that_read_counters_are_asked_before_any_hook_has_its_turn() -> None:
    seen: Seen = []

    class Notes(Asked):
        def __call__(self, moment: Moment) -> bool:
            seen.append(("asked", moment.iteration))
            return True

    trainer = CountingTrainer()
    trainer.register_hooks([Turn("first", every(1), seen, priority=300), Turn("second", Notes(), seen)])
    trainer.train(0, 1)
    assert seen == [("asked", 1), ("first", 1), ("second", 1)]


def test_a_trigger_that_reads_values_is_asked_at_its_turn() -> None:
    seen: Seen = []
    trainer = CountingTrainer()
    trainer.register_hooks(
        [
            Turn("reads", Function(lambda trainer: seen == [("writes", 1)]), seen),
            Turn("writes", At(1), seen, priority=300),
        ]
    )
    trainer.train(0, 3)
    assert seen == [("writes", 1), ("reads", 1)]


def test_a_checkpoint_is_written_before_every_other_turn_though_its_priority_is_lower(tmp_path: Path) -> None:
    seen: Seen = []
    trainer = CountingTrainer()
    checkpointer = Checkpointer(tmp_path)
    turn = Turn("early", every(2), seen, priority=300, act=lambda _: seen.append((str(sorted(_files(tmp_path))), 0)))
    trainer.register_hooks([turn, PeriodicCheckpointer(checkpointer, 2)])
    trainer.train(0, 3)
    assert seen == [("early", 2), ("['model_iter_0000001.pth']", 0)]


def _files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.pth")]


def make(folder: Path, seen: Seen, *, dies: Any = None, values: Any = None) -> CountingTrainer:
    """Evaluation every 3 steps, checkpoint every 4 and at the best, a plot every 2, and something that may die."""
    trainer = CountingTrainer(PositionedLoader(5))
    checkpointer = Checkpointer(folder)

    def evaluate() -> dict[str, float]:
        seen.append(("evaluation", trainer.iter + 1))
        if dies == ("evaluation", trainer.iter + 1):
            raise MemoryError("in the evaluation")
        return {"score": float(-trainer.iter if values is None else values[trainer.iter])}

    def plot(_: Any) -> None:
        if dies == ("plot", trainer.iter + 1):
            raise MemoryError("in the plot")

    trainer.register_hooks(
        [
            EvalHook(3, evaluate),
            PeriodicCheckpointer(checkpointer, 4),
            BestCheckpointer(checkpointer, "score"),
            Turn("plot", every(2), seen, priority=50, act=plot),
            Turn("once", Once(), seen, priority=40),
            Turn("best", BestValue("score"), seen, priority=30),
        ]
    )
    return trainer


def resumed(folder: Path, seen: Seen, **options: Any) -> CountingTrainer:
    choice = Checkpointer(folder).find_resume()
    assert choice is not None
    trainer = make(folder, seen, **options)
    trainer.load_state_dict(choice.state)
    return trainer


def test_evaluations_come_after_steps_3_6_9_12_resumed_or_not(tmp_path: Path) -> None:
    whole: Seen = []
    make(tmp_path / "whole", whole).train(0, 12)
    assert [done for name, done in whole if name == "evaluation"] == [3, 6, 9, 12]
    for part in range(4, 12):
        seen: Seen = []
        folder = tmp_path / str(part)
        first = make(folder, seen)
        first.register_hooks([_Dies(part)])
        with pytest.raises(KeyboardInterrupt):
            first.train(0, 12)
        before = [entry for entry in seen if entry[1] <= part // 4 * 4]
        rest: Seen = []
        second = resumed(folder, rest)
        assert second.iter == part // 4 * 4
        second.train(second.iter, 12)
        assert second.steps == list(range(part // 4 * 4, 12))
        # The turns of the boundary of the checkpoint are taken again: they had not come when it was written.
        again = [entry for entry in before if entry[1] == part // 4 * 4]
        assert [entry for entry in before if entry not in again] + rest == whole


class _Dies(HookBase):
    def __init__(self, at: int) -> None:
        self.at = at

    def before_step(self) -> None:
        if self.trainer.iter == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("dies", [("evaluation", 12), ("plot", 12), ("plot", 4), ("plot", 8)])
def test_a_run_that_dies_in_a_turn_takes_that_turn_and_the_later_ones_when_it_is_resumed(
    tmp_path: Path, dies: Any
) -> None:
    whole: Seen = []
    make(tmp_path / "whole", whole).train(0, 12)
    seen: Seen = []
    with pytest.raises(MemoryError):
        make(tmp_path / "part", seen, dies=dies).train(0, 12)
    rest: Seen = []
    second = resumed(tmp_path / "part", rest)
    assert second.iter == dies[1]
    second.train(second.iter, 12)
    assert second.steps == list(range(dies[1], 12))
    assert [entry for entry in seen if entry[1] < dies[1]] + rest == whole
    assert second.outcome == "finished"
    assert (tmp_path / "part" / "model_final.pth").is_file()


def test_owed_turns_are_taken_before_the_first_step_and_see_the_counters_of_their_boundary(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        make(tmp_path, [], dies=("plot", 4)).train(0, 6)
    trainer = resumed(tmp_path, [])
    rows: list[tuple[Any, ...]] = []

    def note(trainer: Any) -> None:
        rows.append((list(trainer.steps), trainer.iter, trainer.storage.iter, trainer.epoch_step))

    for hook in trainer.hook_table.hooks:
        if hook.name == "plot":
            hook._act = note  # type: ignore[attr-defined]
    trainer.train(trainer.iter, 6)
    assert rows == [([], 3, 3, 4), ([4, 5], 5, 5, 1)]


def test_the_checkpoint_that_a_run_is_resumed_from_is_not_written_again(tmp_path: Path) -> None:
    seen: Seen = []
    first = make(tmp_path, seen)
    first.register_hooks([_Dies(5)])
    with pytest.raises(KeyboardInterrupt):
        first.train(0, 10)
    path = tmp_path / "model_iter_0000003.pth"
    before = path.stat().st_mtime_ns, path.stat().st_ino
    second = resumed(tmp_path, seen)
    second.train(second.iter, 10)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert first.steps[:4] + second.steps == list(range(10))


def test_two_checkpoints_due_at_once_are_both_owed_until_both_are_written(tmp_path: Path) -> None:
    class Full(Checkpointer):
        def save(self, *args: Any, **kwargs: Any) -> Path:
            raise OSError("no space left")

    def trainer(second: Checkpointer) -> CountingTrainer:
        own = CountingTrainer()
        hooks = [PeriodicCheckpointer(Checkpointer(tmp_path / "a"), 2), PeriodicCheckpointer(second, 2)]
        hooks[1].name = "mirror"
        own.register_hooks(hooks)
        return own

    with pytest.raises(OSError, match="no space left"):
        trainer(Full(tmp_path / "b")).train(0, 3)
    choice = Checkpointer(tmp_path / "a").find_resume()
    assert choice is not None
    again = trainer(Checkpointer(tmp_path / "b"))
    again.load_state_dict(choice.state)
    again.train(again.iter, 3)
    assert (tmp_path / "b" / "model_iter_0000001.pth").is_file()


def test_a_checkpoint_with_a_value_trigger_is_written_at_its_turn_and_owes_only_later_ones(tmp_path: Path) -> None:
    make(tmp_path, [], values={2: 1.0, 5: 5.0, 8: 3.0, 11: 2.0}).train(0, 12)
    from fastreid_lite.checkpoint import load_checkpoint

    best = load_checkpoint(tmp_path / "model_best.pth")
    assert best["iteration"] == 5
    assert set(best["trainer"]["boundary"]["turns"]) == {"plot", "best"}
    seen: Seen = []
    trainer = make(tmp_path, seen, values={2: 1.0, 5: 5.0, 8: 3.0, 11: 2.0})
    trainer.load_state_dict(best)
    trainer.train(trainer.iter, 12)
    assert seen[:2] == [("plot", 6), ("best", 6)]
    assert ("evaluation", 6) not in seen


def test_what_is_due_only_because_the_run_ends_is_not_owed_by_a_longer_run(tmp_path: Path) -> None:
    def trainer(seen: Seen) -> CountingTrainer:
        own = CountingTrainer()
        hooks = [
            PeriodicCheckpointer(Checkpointer(tmp_path), 0),
            Turn("last", AtEnd(), seen),
            Turn("two", every(2), seen),
        ]
        own.register_hooks(hooks)
        return own

    seen: Seen = []
    trainer(seen).train(0, 4)
    assert seen == [("two", 2), ("last", 4), ("two", 4)]
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    assert choice.path.name == "model_final.pth"
    longer: Seen = []
    second = trainer(longer)
    second.load_state_dict(choice.state)
    second.train(second.iter, 6)
    assert longer == [("two", 4), ("last", 6), ("two", 6)]


@pytest.mark.parametrize("stops", [False, True])
def test_a_trigger_with_the_end_in_it_fires_once_at_the_last_boundary(stops: bool) -> None:
    seen: Seen = []
    trainer = CountingTrainer()
    turns = [Turn("or", every(2) | AtEnd(), seen), Turn("not", every(2) & ~AtEnd(), seen)]
    stop = Turn("stop", At(4), [], priority=60, act=lambda trainer: trainer.stop("enough")) if stops else None
    trainer.register_hooks([*turns, stop])
    trainer.train(0, 9 if stops else 4)
    # Where the end is asked for in the midst of the turns, those that were taken were taken.
    assert seen == [("or", 2), ("not", 2), ("or", 4), *([("not", 4)] if stops else [])]


def test_state_of_hooks_that_are_gone_is_left_out_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make(tmp_path, []).train(0, 5)
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    trainer = CountingTrainer(PositionedLoader(5))
    trainer.load_state_dict(choice.state)
    trainer.train(trainer.iter, 8)
    assert "the checkpoint has the state of a hook 'EvalHook' that this run does not have: left out" in caplog.text
    assert trainer.steps == [5, 6, 7]
