"""Points in order, who is called there, and what a hook costs where it is not called."""

from __future__ import annotations

import logging

import pytest

from fastreid_lite.engine.hooks.base import CHANGE, PRODUCE, READ, WRITE, HookBase
from fastreid_lite.engine.triggers import every
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder, Turn, toy_trainer


def test_points_come_in_the_order_that_the_design_lists() -> None:
    trainer, recorder = CountingTrainer(PositionedLoader(2)), Recorder(trigger=every(1))
    trainer.register_hooks([recorder])
    trainer.train(0, 3)
    step = ["before_step", "after_backward", "after_step"]
    assert [point for point, _ in recorder.seen] == [
        "before_train",
        "before_epoch", *step, "boundary", *step, "after_epoch", "boundary",
        "before_epoch", *step, "boundary", "finish",
        "after_train",
    ]  # fmt: skip


def test_simple_trainer_calls_after_backward_once_a_step_whatever_is_accumulated() -> None:
    trainer, recorder = toy_trainer(accumulate_steps=2), Recorder()
    trainer.register_hooks([recorder])
    trainer.train(0, 3)
    assert [iteration for point, iteration in recorder.seen if point == "after_backward"] == [0, 1, 2]


def test_an_own_run_step_that_calls_no_after_backward_has_none() -> None:
    class Silent(CountingTrainer):
        def run_step(self) -> None:
            self.steps.append(self.iter)

    trainer, recorder = Silent(), Recorder()
    trainer.register_hooks([recorder])
    trainer.train(0, 2)
    assert "after_backward" not in [point for point, _ in recorder.seen]


def test_higher_priority_comes_first_and_equal_ones_in_order_of_registration() -> None:
    seen: list[tuple[str, int]] = []

    def hook(name: str, priority: int) -> HookBase:
        return Turn(name, every(1), seen, priority=priority)

    trainer = CountingTrainer()
    trainer.register_hooks([hook("write", WRITE), hook("read 1", READ), hook("produce", PRODUCE)])
    trainer.register_hooks([hook("change", CHANGE), hook("read 2", READ), hook("first", 301)])
    trainer.train(0, 1)
    assert [name for name, _ in seen] == ["first", "produce", "change", "read 1", "read 2", "write"]


def test_order_holds_at_every_point() -> None:
    seen: list[tuple[str, str]] = []

    class Named(HookBase):
        def __init__(self, name: str, priority: int) -> None:
            self.name, self.priority = name, priority

        def before_train(self) -> None:
            seen.append(("before_train", str(self.name)))

        def before_step(self) -> None:
            seen.append(("before_step", str(self.name)))

        def after_train(self) -> None:
            seen.append(("after_train", str(self.name)))

    trainer = CountingTrainer()
    trainer.register_hooks([Named("low", 0), Named("high", 300)])
    trainer.train(0, 1)
    points = ["before_train", "before_step", "after_train"]
    assert seen == [(point, name) for point in points for name in ("high", "low")]


def test_a_hook_enters_the_table_only_where_it_overrides() -> None:
    class Late(HookBase):
        def after_step(self) -> None:
            pass

    trainer = CountingTrainer()
    trainer.register_hooks([Late(), *(HookBase() for _ in range(50))])
    table = trainer.hook_table
    assert [len(at) for at in (table.before_epoch, table.before_step, table.after_backward, table.after_epoch)] == [
        0
    ] * 4
    assert len(table.after_step) == 1


def test_a_method_set_on_the_instance_counts_as_overridden() -> None:
    hook, calls = HookBase(), []
    hook.before_step = lambda: calls.append(1)  # type: ignore[method-assign]
    trainer = CountingTrainer()
    trainer.register_hooks([hook])
    trainer.train(0, 2)
    assert calls == [1, 1]


def test_none_among_the_hooks_is_left_out() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([None, Recorder(), None])
    assert len(trainer.hook_table.hooks) == 1


def test_the_resolved_table_is_logged_once_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([Turn("evaluation", every(5) & ~every(10), [], priority=PRODUCE), Recorder()])
    with caplog.at_level(logging.INFO):
        trainer.train(0, 3)
    (table,) = [record.getMessage() for record in caplog.records if "hooks in the order" in record.getMessage()]
    lines = table.splitlines()[3:]
    assert lines[0].split()[:2] == ["300", "evaluation"]
    assert "AllOf(Interval(5, iteration), Not(Interval(10, iteration)))" in lines[0]
    assert "before_train before_epoch before_step after_backward after_step after_epoch after_train" in lines[1]


class Stateful(HookBase):
    def state_dict(self) -> dict[str, int]:
        return {"count": 1}


def test_two_stateful_hooks_of_one_name_are_refused_and_two_names_are_not() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([Stateful()])
    with pytest.raises(ValueError, match="two hooks are named 'Stateful' and at least one of them keeps state"):
        trainer.register_hooks([Stateful()])
    second = Stateful()
    second.name = "another"
    trainer.register_hooks([second])
    assert set(trainer.state_dict()["trainer"]["hooks"]) == {"Stateful", "another"}


def test_a_trigger_with_state_makes_its_hook_stateful() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([Turn("plot", every(9, "second"), [])])
    with pytest.raises(ValueError, match="two hooks are named 'plot'"):
        trainer.register_hooks([Turn("plot", every(9, "second"), [])])


def test_hooks_without_state_get_a_number() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([HookBase(), HookBase(), HookBase()])
    assert [hook.name for hook in trainer.hook_table.hooks] == ["HookBase", "HookBase_2", "HookBase_3"]


def test_what_is_no_hook_or_cannot_be_called_is_refused() -> None:
    trainer, hook = CountingTrainer(), HookBase()
    with pytest.raises(TypeError, match="a hook is a HookBase, got .*; wrap a function in CallbackHook"):
        trainer.register_hooks([print])  # type: ignore[list-item]
    trainer.register_hooks([hook])
    with pytest.raises(ValueError, match="the hook 'HookBase' is registered already"):
        trainer.register_hooks([hook])

    class Mute(HookBase):
        trigger = every(3)

    with pytest.raises(TypeError, match=r"Mute has a trigger, so it must define __call__\(trainer\)"):
        trainer.register_hooks([Mute()])
    crooked = HookBase()
    crooked.priority = "high"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="the priority of .* is 'high', expected a whole number"):
        trainer.register_hooks([crooked])
    with pytest.raises(TypeError, match="a trigger is a Trigger"):
        trainer.register_hooks([Turn("odd", 5, [])])  # type: ignore[arg-type]


def test_a_pair_or_a_function_may_stand_for_a_trigger() -> None:
    trainer, seen = CountingTrainer(), []
    pair, function = (2, "iteration"), lambda trainer: trainer.iter == 2
    trainer.register_hooks([Turn("pair", pair, seen), Turn("function", function, seen)])  # type: ignore[arg-type]
    trainer.train(0, 4)
    assert seen == [("pair", 2), ("function", 3), ("pair", 4)]


def test_a_hook_with_a_trigger_is_asked_from_the_next_boundary_on_where_it_joins_in_mid_run() -> None:
    seen: list[tuple[str, int]] = []

    class Joins(HookBase):
        def after_step(self) -> None:
            if self.trainer.iter == 3:
                self.trainer.register_hooks([Turn("late", every(2), seen)])

    trainer = CountingTrainer()
    trainer.register_hooks([Joins()])
    trainer.train(0, 8)
    assert seen == [("late", 4), ("late", 6), ("late", 8)]


def test_run_step_must_be_defined() -> None:
    from fastreid_lite.engine import TrainerBase

    with pytest.raises(NotImplementedError, match=r"TrainerBase must define run_step\(\)"):
        TrainerBase().train(0, 1)
