"""Functions as a hook."""

from __future__ import annotations

import pytest

from fastreid_lite.engine.hook_table import POINTS
from fastreid_lite.engine.hooks import CallbackHook
from tests.engine.toys import CountingTrainer, PositionedLoader


def test_each_function_is_called_with_the_trainer_at_its_point() -> None:
    trainer, seen = CountingTrainer(PositionedLoader(2)), []

    def note(point: str) -> object:
        return lambda given: seen.append((point, given.iter, given.steps is trainer.steps))

    trainer.register_hooks([CallbackHook(**{point: note(point) for point in POINTS})])  # type: ignore[arg-type]
    trainer.train(0, 2)
    assert [point for point, _, _ in seen] == [
        "before_train", "before_epoch", "before_step", "after_backward", "after_step",
        "before_step", "after_backward", "after_step", "after_epoch", "after_train",
    ]  # fmt: skip
    assert all(same for _, _, same in seen)


def test_only_points_with_a_function_enter_the_table() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([CallbackHook(after_step=lambda trainer: None, before_step=None)])
    assert (len(trainer.hook_table.before_step), len(trainer.hook_table.after_step)) == (0, 1)


def test_a_trigger_drives_the_function_at_the_boundary() -> None:
    trainer, seen = CountingTrainer(), []
    trainer.register_hooks([CallbackHook(trigger=(3, "iteration"), at_boundary=lambda t: seen.append(t.iter))])
    trainer.train(0, 7)
    assert seen == [2, 5]


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(TypeError, match="CallbackHook got after_stop, expected any of before_train, before_epoch"):
        CallbackHook(after_stop=print)
    with pytest.raises(TypeError, match="CallbackHook needs both trigger and at_boundary, or neither"):
        CallbackHook(trigger=(1, "epoch"))
    with pytest.raises(TypeError, match="CallbackHook needs both"):
        CallbackHook(at_boundary=print)
    with pytest.raises(TypeError, match="a trigger is a Trigger"):
        CallbackHook(trigger=5, at_boundary=print)
