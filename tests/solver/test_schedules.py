from __future__ import annotations

import math

import pytest

from fastreid_lite.solver.schedules import CosineSchedule, MultiStepSchedule, StepClock
from fastreid_lite.solver.warmup import Warmup


def test_the_clock_shows_each_step_first_at_the_iteration_that_it_names() -> None:
    clock = StepClock(unit=7, start=3)
    for step in range(1, 20):
        first = clock.first_iteration(step)
        assert clock(first) == step
        assert clock(first - 1) == step - 1
    assert clock.first_iteration(0) == 0


def test_a_milestone_named_twice_counts_twice_and_order_does_not_matter() -> None:
    schedule = MultiStepSchedule((5, 2, 2), gamma=0.5)
    assert [schedule.lr(8.0, iteration) for iteration in range(6)] == [8.0, 8.0, 2.0, 2.0, 2.0, 1.0]


def test_a_group_below_the_minimum_is_not_raised_by_the_cosine() -> None:
    schedule = CosineSchedule(10, eta_min=0.1)
    assert [schedule.lr(0.0, iteration) for iteration in range(11)] == [0.0] * 11


def test_a_cosine_of_no_length_stays_at_the_base_rate() -> None:
    for length in (0, -5):
        assert [CosineSchedule(length).lr(1.0, iteration) for iteration in range(3)] == [1.0] * 3


def test_the_cosine_equals_its_formula() -> None:
    schedule = CosineSchedule(9, eta_min=0.01, warmup=Warmup(iters=3, factor=0.5))
    for iteration in range(10):
        naive = 0.01 + (0.7 - 0.01) / 2 * (1 + math.cos(iteration * math.pi / 9))
        naive *= 0.5 + 0.5 * iteration / 3 if iteration < 3 else 1.0
        assert schedule.lr(0.7, iteration) == pytest.approx(naive, rel=1e-14)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="SOLVER.GAMMA is 0; expected a number above 0"):
        MultiStepSchedule((1,), gamma=0)
    with pytest.raises(ValueError, match="SOLVER.STEPS has the milestone -3"):
        MultiStepSchedule((1, -3))
    with pytest.raises(ValueError, match="SOLVER.ETA_MIN_LR is -1.0"):
        CosineSchedule(3, eta_min=-1.0)
    with pytest.raises(ValueError, match="takes 0 iterations; expected at least 1"):
        StepClock(unit=0)
    with pytest.raises(ValueError, match="starts at -1; expected 0 or more"):
        StepClock(start=-1)


def test_the_rate_stays_until_the_next_change_and_no_change_is_passed_over() -> None:
    warmup = Warmup(iters=9, factor=0.1)
    for clock in (StepClock(), StepClock(unit=5, start=3), StepClock(start=12)):
        schedules = (
            MultiStepSchedule((2, 4.5, 4.5), clock=clock, warmup=warmup),
            MultiStepSchedule((), clock=clock),
            CosineSchedule(6, eta_min=0.1, clock=clock, warmup=warmup),
        )
        for schedule in schedules:
            for iteration in range(60):
                following = schedule.next_change(iteration)
                assert following > iteration
                now = schedule.lr(1.0, iteration)
                assert all(schedule.lr(1.0, later) == now for later in range(iteration, min(following, 60)))
    assert MultiStepSchedule((2,), clock=StepClock(unit=100)).next_change(5) == 200
