"""Triggers that read a published number."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fastreid_lite.engine.moment import Moment
from fastreid_lite.engine.triggers import At
from fastreid_lite.engine.value_triggers import BestValue, Comparison, EarlyStop
from fastreid_lite.storage.event_storage import EventStorage
from tests.engine.toys import CountingTrainer, Turn


def answers(trigger: Any, values: list[float | None]) -> list[bool]:
    """What ``trigger`` says where ``values`` are published one after the other; None publishes nothing."""
    storage = EventStorage()
    found = []
    for step, value in enumerate(values, 1):
        if value is not None:
            storage.put_results({"score": value})
        found.append(trigger(Moment(iteration=step, trainer=SimpleNamespace(storage=storage))))
    return found


def test_best_fires_where_a_value_beats_all_before_it_and_never_for_nan() -> None:
    nan = math.nan
    assert answers(BestValue("score"), [nan, 1, 1, None, 3, 2, nan, 3, 4]) == [
        False, True, False, False, True, False, False, False, True,
    ]  # fmt: skip
    assert answers(BestValue("score", "min"), [3, 4, 2, -math.inf, 1]) == [True, False, True, True, False]
    assert answers(BestValue("score", min_change=0.5), [1, 1.5, 1.6]) == [True, False, True]


def test_a_value_counts_once_however_often_it_is_looked_at() -> None:
    stop = EarlyStop("score", 2)
    assert answers(stop, [5, None, None, 4, None, 3]) == [False, False, False, False, False, True]
    assert stop.best == 5
    assert stop.waited == 2


def test_early_stop_counts_values_without_improvement_in_a_row() -> None:
    assert answers(EarlyStop("score", 2), [1, 1, 2, 2, 2]) == [False, False, False, False, True]
    assert answers(EarlyStop("score", 2), [math.nan, math.nan]) == [False, True]
    assert answers(EarlyStop("score", 1, "min"), [3, 2, 2]) == [False, False, True]


def test_the_smallest_improvement_is_zero_unless_it_is_asked_for() -> None:
    assert answers(EarlyStop("score", 1), [0.300, 0.395]) == [False, False]


@pytest.mark.parametrize("make", [lambda: BestValue("score"), lambda: EarlyStop("score", 3)])
def test_state_carries_the_best_and_what_was_seen(make: Any) -> None:
    storage = EventStorage()
    moment = Moment(iteration=1, trainer=SimpleNamespace(storage=storage))
    first, second = make(), make()
    for value in (3.0, 2.0):
        storage.put_results({"score": value})
        first(moment)
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    assert not second(moment), "an old value is not news to a resumed trigger"
    for value in (1.0, 0.0):
        storage.put_results({"score": value})
        assert first(moment) == second(moment)


def test_a_value_trigger_is_asked_at_its_turn_and_sees_what_this_boundary_wrote() -> None:
    trainer, seen = CountingTrainer(), []
    publish = Turn(
        "publish",
        At([3, 6]),
        seen,
        priority=300,
        act=lambda trainer: trainer.storage.put_results({"score": float(trainer.iter)}),
    )
    trainer.register_hooks([Turn("best", BestValue("score"), seen), publish])
    trainer.train(0, 8)
    assert seen == [("publish", 3), ("best", 3), ("publish", 6), ("best", 6)]


def test_a_value_published_after_its_turn_is_looked_at_after_the_next_step() -> None:
    trainer, seen = CountingTrainer(), []
    publish = Turn(
        "publish",
        At([3]),
        seen,
        priority=0,
        act=lambda trainer: trainer.storage.put_results({"score": float(trainer.iter)}),
    )
    trainer.register_hooks([Turn("best", BestValue("score"), seen), publish])
    trainer.train(0, 8)
    assert seen == [("publish", 3), ("best", 4)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Comparison("most"), "mode is 'most', expected 'max' or 'min'"),
        (lambda: Comparison("max", -1.0), "min_change is -1.0, expected a number >= 0"),
        (lambda: Comparison("max", math.nan), "min_change is nan"),
        (lambda: EarlyStop("score", 0), "patience is 0, expected a whole number >= 1"),
        (lambda: EarlyStop("score", 2.5), "patience is 2.5"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_mean_nothing_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
