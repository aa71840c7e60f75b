"""When: each trigger alone, without a trainer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from fastreid_lite.engine import triggers
from fastreid_lite.engine.moment import Moment
from fastreid_lite.engine.triggers import At, AtEnd, Function, Interval, Never, Once, Trigger, Within, as_trigger, every


def moments(steps: int, length: int = 5, *, cut: int | None = None) -> Iterator[Moment]:
    """The boundaries of a run of ``steps`` steps in epochs of ``length``, the first one cut after ``cut`` steps."""
    epoch = in_epoch = 0
    for iteration in range(1, steps + 1):
        in_epoch += 1
        ended = in_epoch == (cut if cut is not None and epoch == 0 else length)
        yield Moment(
            iteration=iteration,
            epoch=epoch + ended,
            epoch_step=0 if ended else in_epoch,
            epoch_length=length,
            epoch_ended=ended,
            seconds=0.5 * iteration,
            last=iteration == steps,
            ended_step=in_epoch if ended else None,
        )
        if ended:
            epoch, in_epoch = epoch + 1, 0


def fired(trigger: Trigger, steps: int = 20, length: int = 5, *, cut: int | None = None) -> list[int]:
    """The steps done at which ``trigger`` fires, asked at every boundary."""
    return [moment.iteration for moment in moments(steps, length, cut=cut) if trigger(moment)]


def fired_when_asked_late(trigger: Trigger, steps: int = 20, length: int = 5, *, cut: int | None = None) -> list[int]:
    """The same, asked only where the trigger's own ``next_iteration`` says so, and at the ends of epochs."""
    found, due = [], 0.0
    for moment in moments(steps, length, cut=cut):
        if moment.iteration >= due or moment.epoch_ended:
            if trigger(moment):
                found.append(moment.iteration)
            due = trigger.next_iteration(moment)
            assert due > moment.iteration
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: every(5), [5, 10, 15, 20]),
        (lambda: every(7), [7, 14]),
        (lambda: every(1), list(range(1, 21))),
        (lambda: every(0), [20]),
        (lambda: every(-1), []),
        (lambda: every(-1, "epoch"), []),
        (lambda: every(0, "second"), [20]),
        (lambda: Never(), []),
        (lambda: AtEnd(), [20]),
        (lambda: every(1, "epoch"), [5, 10, 15, 20]),
        (lambda: every(2, "epoch"), [10, 20]),
        (lambda: every(0.5, "epoch"), [3, 5, 8, 10, 13, 15, 18, 20]),
        (lambda: every(1.5, "epoch"), [8, 15]),
        (lambda: every(1 / 3, "epoch"), [2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19, 20]),
        (lambda: every(2, "second"), [4, 8, 12, 16, 20]),
        (lambda: At(7), [7]),
        (lambda: At([3, 11, 99]), [3, 11]),
        (lambda: At([1, 2.5], "epoch"), [5, 13]),
        (lambda: Once(), [1]),
        (lambda: Within(18), [18, 19, 20]),
        (lambda: Within(None, 3), [1, 2]),
        (lambda: Within(4, 6), [4, 5]),
        (lambda: Within(1, 1.5, "epoch"), [5, 6, 7]),
        (lambda: every(4) & every(6), [12]),
        (lambda: every(8) | At(3), [3, 8, 16]),
        (lambda: every(5) & ~At(10), [5, 15, 20]),
        (lambda: every(5) & ~AtEnd(), [5, 10, 15]),
        (lambda: ~Within(3, 19), [1, 2, 19, 20]),
        (lambda: every(5) & Within(8, None), [10, 15, 20]),
        (lambda: every(7) & (2, "iteration"), [14]),
        (lambda: every(9) | (1, "epoch"), [5, 9, 10, 15, 18, 20]),
    ],
)
def test_a_trigger_fires_where_it_says_asked_at_every_step_or_only_where_it_may_fire(make: Any, expected: Any) -> None:
    assert fired(make()) == expected
    if not make().reads_end:
        assert fired_when_asked_late(make()) == expected


def test_an_epoch_that_is_cut_does_not_swallow_the_points_that_lay_behind_the_cut() -> None:
    assert fired(At(0.5, "epoch"), 12, cut=2) == [2]
    assert fired(every(0.5, "epoch"), 7, cut=2) == [2, 5, 7]
    assert fired(every(1, "epoch"), 12, cut=2) == [2, 7, 12]
    assert fired_when_asked_late(every(1, "epoch"), 12, cut=2) == [2, 7, 12]


def test_an_interval_in_iterations_is_not_asked_in_between() -> None:
    assert every(20).next_iteration(Moment(iteration=21)) == 40
    assert every(1, "epoch").next_iteration(Moment(iteration=7, epoch=1, epoch_step=2, epoch_length=5)) == 10
    assert every(3, "second").next_iteration(Moment(iteration=7, clock_step=50)) == 50
    assert At([3, 11]).next_iteration(Moment(iteration=3)) == 11
    assert At([3, 11]).next_iteration(Moment(iteration=11)) == math.inf
    assert Within(10, 20).next_iteration(Moment(iteration=2)) == 10
    assert Within(10, 20).next_iteration(Moment(iteration=19)) == math.inf


def test_once_is_not_asked_again_when_it_has_fired() -> None:
    once = Once()
    assert once.next_iteration(Moment(iteration=4)) == 5
    once(Moment(iteration=5))
    assert once.next_iteration(Moment(iteration=5)) == math.inf


@pytest.mark.parametrize("make", [Once, lambda: every(2, "second"), lambda: Once() | At(7), lambda: ~Once()])
def test_state_makes_a_resumed_trigger_fire_where_the_uninterrupted_one_does(make: Any) -> None:
    whole = fired(make())
    for stop in range(1, 20):
        first, second = make(), make()
        start = [moment.iteration for moment in moments(20) if moment.iteration <= stop and first(moment)]
        second.load_state_dict(first.state_dict())
        rest = [moment.iteration for moment in moments(20) if moment.iteration > stop and second(moment)]
        assert start + rest == whole


def test_each_part_of_a_combination_keeps_its_own_count() -> None:
    # AllOf asks the second part also where the first has said no: were it lazy, Once would be used up later.
    assert fired(At(3) & Once()) == []
    assert fired(every(3) | Once(), 6) == [1, 3, 6]


def test_a_function_is_a_trigger_that_reads_values() -> None:
    trigger = as_trigger(lambda trainer: trainer == "ours")
    assert isinstance(trigger, Function)
    assert trigger.reads_values
    assert trigger(Moment(iteration=1, trainer="ours"))
    assert not trigger(Moment(iteration=1, trainer="theirs"))
    assert (every(2) & trigger).reads_values
    assert (every(2) | AtEnd()).reads_end


def test_what_may_stand_for_a_trigger() -> None:
    own = every(3)
    assert as_trigger(own) is own
    assert isinstance(as_trigger(None), Never)
    assert fired(as_trigger((2, "epoch"))) == [10, 20]
    assert isinstance(as_trigger((0, "epoch")), AtEnd)
    with pytest.raises(TypeError, match=r"a trigger is a Trigger, \(period, unit\), a function or None, got 5"):
        as_trigger(5)


def test_combinations_can_be_imported_beside_the_other_triggers() -> None:
    assert {triggers.AllOf, triggers.AnyOf, triggers.Not} <= set(Trigger.__subclasses__()) | set(
        triggers.AllOf.__subclasses__()
    )
    with pytest.raises(AttributeError, match="no attribute 'Sometimes'"):
        triggers.__getattr__("Sometimes")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: every(5, "steps"), ValueError, "unit is 'steps', expected one of iteration, epoch, second"),
        (lambda: every(0, "furlong"), ValueError, "unit is 'furlong'"),
        (lambda: every("5"), TypeError, "period is '5', expected a number"),
        (lambda: every(True), TypeError, "period is True, expected a number"),
        (lambda: every(math.nan), ValueError, "period is nan, expected a positive number"),
        (lambda: every(math.inf), ValueError, "period is inf, expected a positive number"),
        (lambda: every(2.5), ValueError, "period is 2.5 iterations, expected a whole number"),
        (lambda: Interval(0), ValueError, r"every\(0\) is at the end, every\(-1\) never"),
        (lambda: At(3, "second"), ValueError, "unit is 'second', expected 'iteration' or 'epoch'"),
        (lambda: At("3"), TypeError, "points are '3', expected a number or several"),
        (lambda: At([1, 2.5]), ValueError, r"points are \[1, 2.5\]: iterations done"),
        (lambda: At(0), ValueError, "points are 0: iterations done, expected numbers > 0"),
        (lambda: Within(1, 2, "second"), ValueError, "unit is 'second'"),
        (lambda: Within(5, 5), ValueError, "the range from 5 to 5 is empty"),
        (lambda: Function(3), TypeError, "Function needs a function of the trainer, got 3"),
        (lambda: triggers.AllOf(), ValueError, "AllOf needs at least one trigger"),
        (lambda: every(3) & 4, TypeError, "a trigger is a Trigger"),
        (lambda: Trigger()(Moment(iteration=1)), NotImplementedError, "Trigger must define __call__"),
    ],
)
def test_a_trigger_that_means_nothing_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
