from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.solver import SCHEDULES, LRSchedule, build_lr_schedule

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "schedules.json"


@pytest.fixture(scope="module")
def golden() -> Any:
    if not GOLDEN.is_file():
        pytest.skip("the golden vectors are not beside this checkout")
    return json.loads(GOLDEN.read_text())


def rates(schedule: LRSchedule, max_iter: int, base_lr: float = 1.0, start: int = 0) -> list[float]:
    return [schedule.lr(base_lr, iteration) for iteration in range(start, max_iter)]


def test_the_short_settings_equal_fast_reid_in_every_iteration(golden: Any, make_config: Any) -> None:
    assert len(golden["short"]) == 11
    for name, case in golden["short"].items():
        cfg = make_config(**case["solver"], MAX_EPOCH=case["max_epoch"], BASE_LR=case["base_lrs"][0])
        length = case["iters_per_epoch"] * case["max_epoch"]
        schedule = build_lr_schedule(cfg, iters_per_epoch=case["iters_per_epoch"], max_iter=length)
        for group, base_lr in enumerate(case["base_lrs"]):
            wanted = case[f"lr_per_iteration_group{group}"]
            assert len(wanted) == length
            assert rates(schedule, length, base_lr) == pytest.approx(wanted, rel=1e-12, abs=0), name
            assert schedule.lr(base_lr, length) == pytest.approx(case["lr_after_training"][group], rel=1e-12), name


def test_the_recipes_equal_fast_reid_at_their_real_length(golden: Any, make_config: Any) -> None:
    assert len(golden["recipes"]) == 4
    for name, case in golden["recipes"].items():
        cfg = make_config(**case["solver"], MAX_EPOCH=case["max_epoch"], BASE_LR=case["base_lr"])
        length = case["iters_per_epoch"]
        schedule = build_lr_schedule(cfg, iters_per_epoch=length, max_iter=length * case["max_epoch"])
        for epoch in range(case["max_epoch"]):
            first = schedule.lr(case["base_lr"], epoch * length)
            last = schedule.lr(case["base_lr"], (epoch + 1) * length - 1)
            assert first == pytest.approx(case["lr_first_iteration_of_epoch"][epoch], rel=1e-12, abs=0), (name, epoch)
            assert last == pytest.approx(case["lr_last_iteration_of_epoch"][epoch], rel=1e-12, abs=0), (name, epoch)


@pytest.mark.parametrize("steps_from", ["warmup_end", "start"])
def test_a_resumed_run_goes_on_with_the_rates_of_the_uninterrupted_one(make_config: Any, steps_from: str) -> None:
    cfg = make_config(
        SCHED="CosineAnnealingLR", WARMUP_ITERS=4, DELAY_ITERS=6, MAX_ITER=12, MAX_EPOCH=None, STEPS_FROM=steps_from
    )
    whole = rates(build_lr_schedule(cfg, iters_per_epoch=3, max_iter=12), 12)
    for done in range(1, 12):
        assert rates(build_lr_schedule(cfg, iters_per_epoch=3, max_iter=12), 12, start=done) == whole[done:]
    assert whole[:7] == pytest.approx([0.1, 0.325, 0.55, 0.775, 1.0, 1.0, 1.0])
    assert whole[6:] == sorted(whole[6:], reverse=True)
    assert whole[11] == pytest.approx(1e-7)


def test_counted_from_the_start_milestones_are_epochs_of_the_run(make_config: Any) -> None:
    cfg = make_config(STEPS=(2, 3), WARMUP_ITERS=15, STEPS_FROM="start", MAX_EPOCH=4)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=10, max_iter=40), 40)
    for iteration, rate in enumerate(found):
        naive = 0.1 + 0.9 * iteration / 15 if iteration < 15 else 1.0
        naive *= 0.01 if iteration >= 30 else 0.1 if iteration >= 20 else 1.0
        assert rate == pytest.approx(naive, rel=1e-12)


def test_counted_from_the_start_a_milestone_inside_the_warmup_holds_there(make_config: Any) -> None:
    cfg = make_config(STEPS=(), STEPS_ITERS=(2,), WARMUP_ITERS=4, STEPS_FROM="start", MAX_ITER=6)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=3, max_iter=6), 6)
    assert found == pytest.approx([0.1, 0.325, 0.055, 0.0775, 0.1, 0.1])


def test_counted_from_the_start_the_cosine_runs_from_the_delay_to_the_last_step(make_config: Any) -> None:
    cfg = make_config(SCHED="CosineAnnealingLR", DELAY_EPOCHS=2, WARMUP_ITERS=0, STEPS_FROM="start", MAX_EPOCH=5)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=10, max_iter=50), 50)
    assert found[:21] == [1.0] * 21
    assert found[21] < 1.0
    assert found[48] > found[49] == pytest.approx(1e-7)


def test_milestones_in_iterations_count_from_the_end_of_warmup_or_from_the_start(make_config: Any) -> None:
    for steps_from, falls_at in (("warmup_end", 12), ("start", 8)):
        cfg = make_config(STEPS_ITERS=(8,), WARMUP_ITERS=4, STEPS_FROM=steps_from, MAX_ITER=20)
        found = rates(build_lr_schedule(cfg, iters_per_epoch=3, max_iter=20), 20)
        assert found[falls_at - 1] == 1.0
        assert found[falls_at] == pytest.approx(0.1)


def test_a_delay_in_iterations_makes_milestones_in_epochs_count_iterations(make_config: Any) -> None:
    cfg = make_config(STEPS=(1,), DELAY_ITERS=5, WARMUP_ITERS=0, MAX_EPOCH=4)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=10, max_iter=40), 40)
    assert found == pytest.approx([1.0] * 15 + [0.1] * 25)


def test_groups_keep_their_ratios_at_every_step(make_config: Any) -> None:
    cfg = make_config(STEPS_ITERS=(3, 5), WARMUP_ITERS=4, MAX_ITER=12)
    schedule = build_lr_schedule(cfg, iters_per_epoch=4, max_iter=12)
    for iteration in range(12):
        base, bias, heads = (schedule.lr(factor * 3.5e-4, iteration) for factor in (1, 2, 10))
        assert (bias / base, heads / base) == pytest.approx((2, 10), rel=1e-12)


def test_a_longer_run_recomputes_the_schedule_for_its_new_length(make_config: Any) -> None:
    cfg = make_config(SCHED="CosineAnnealingLR", WARMUP_ITERS=2, MAX_ITER=20)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=5, max_iter=20), 20)
    assert found[10] > 0.4
    assert found[19] == pytest.approx(1e-7)


@pytest.mark.parametrize("steps_from", ["warmup_end", "start"])
def test_milestones_past_the_end_are_ignored_with_both_values_named(
    make_config: Any, caplog: pytest.LogCaptureFixture, steps_from: str
) -> None:
    cfg = make_config(STEPS_ITERS=(10, 30, 60), WARMUP_ITERS=0, MAX_ITER=20, STEPS_FROM=steps_from)
    found = rates(build_lr_schedule(cfg, iters_per_epoch=5, max_iter=20), 20)
    assert found == pytest.approx([1.0] * 10 + [0.1] * 10)
    assert (
        "SOLVER.STEPS_ITERS (10, 30, 60): the milestones 30, 60 would take effect at iterations 30, 60" in caplog.text
    )
    assert "SOLVER.MAX_ITER 20" in caplog.text


def test_milestones_that_the_warmup_moves_past_the_end_are_warned_of(
    make_config: Any, caplog: pytest.LogCaptureFixture
) -> None:
    build_lr_schedule(make_config(STEPS=(3, 9), WARMUP_ITERS=40, MAX_EPOCH=12), iters_per_epoch=10, max_iter=120)
    assert "SOLVER.STEPS (3, 9): the milestones 9 would take effect at iterations 120" in caplog.text
    assert "SOLVER.MAX_EPOCH 12, 120 iterations" in caplog.text


@pytest.mark.parametrize("sched", ["MultiStepLR", "CosineAnnealingLR"])
@pytest.mark.parametrize("steps_from", ["warmup_end", "start"])
@pytest.mark.parametrize("max_iter", [None, 20])
@pytest.mark.parametrize("warmup_iters", [19, 20, 40])
def test_a_warmup_as_long_as_the_run_never_goes_over_the_base_rate(
    make_config: Any,
    caplog: pytest.LogCaptureFixture,
    sched: str,
    steps_from: str,
    max_iter: int | None,
    warmup_iters: int,
) -> None:
    cfg = make_config(
        SCHED=sched, STEPS=(), WARMUP_ITERS=warmup_iters, MAX_EPOCH=4, MAX_ITER=max_iter, STEPS_FROM=steps_from
    )
    found = rates(build_lr_schedule(cfg, iters_per_epoch=5, max_iter=20), 25)
    assert all(0.0 <= rate <= 1.0 for rate in found)
    named = f"SOLVER.WARMUP_ITERS {warmup_iters} is not shorter than the run"
    assert (named in caplog.text) == (warmup_iters >= 20)


@pytest.mark.parametrize("sched", ["MultiStepLR", "CosineAnnealingLR"])
@pytest.mark.parametrize("steps_from", ["warmup_end", "start"])
def test_no_warmup_and_the_shortest_runs_divide_by_nothing(make_config: Any, sched: str, steps_from: str) -> None:
    for max_iter in (0, 1, 2):
        cfg = make_config(SCHED=sched, STEPS=(0,), GAMMA=1.0, WARMUP_ITERS=0, MAX_EPOCH=1, STEPS_FROM=steps_from)
        schedule = build_lr_schedule(cfg, iters_per_epoch=1, max_iter=max_iter)
        assert schedule.lr(1.0, 0) == 1.0


def test_settings_without_effect_are_warned_of(make_config: Any, caplog: pytest.LogCaptureFixture) -> None:
    build_lr_schedule(
        make_config(STEPS=(1,), DELAY_EPOCHS=2, WARMUP_ITERS=0, STEPS_FROM="start"), iters_per_epoch=5, max_iter=20
    )
    assert "SOLVER.DELAY_EPOCHS 2 has no effect on milestones that count from the start" in caplog.text
    cosine = make_config(SCHED="CosineAnnealingLR", DELAY_ITERS=30, WARMUP_ITERS=0, ETA_MIN_LR=1.0)
    schedule = build_lr_schedule(cosine, iters_per_epoch=5, max_iter=20)
    assert "SOLVER.DELAY_ITERS 30 is not shorter than the run" in caplog.text
    assert "SOLVER.ETA_MIN_LR 1.0 is above SOLVER.BASE_LR 0.00035: the rate stays at its base" in caplog.text
    assert rates(schedule, 20, 3.5e-4) == [3.5e-4] * 20


def test_a_sensible_schedule_warns_of_nothing(make_config: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        build_lr_schedule(make_config(STEPS=(40, 90), WARMUP_ITERS=2000), iters_per_epoch=202, max_iter=202 * 120)
    assert caplog.text == ""


def test_names_and_numbers_out_of_range_are_refused(make_config: Any) -> None:
    def build(iters_per_epoch: int = 5, max_iter: int = 20, **changes: Any) -> None:
        build_lr_schedule(make_config(**changes), iters_per_epoch=iters_per_epoch, max_iter=max_iter)

    with pytest.raises(KeyError, match="unknown learning-rate schedule 'MultiStep' .*did you mean 'MultiStepLR'"):
        build(SCHED="MultiStep")
    with pytest.raises(KeyError, match="unknown way of counting steps 'begin' .SOLVER.STEPS_FROM"):
        build(STEPS_FROM="begin")
    with pytest.raises(ValueError, match="SOLVER.DELAY_EPOCHS is -1; expected 0 or more"):
        build(DELAY_EPOCHS=-1)
    with pytest.raises(ValueError, match="neither SOLVER.DELAY_EPOCHS nor SOLVER.DELAY_ITERS has a value"):
        build(DELAY_EPOCHS=None)
    with pytest.raises(ValueError, match="got iters_per_epoch=0 and max_iter=20"):
        build(iters_per_epoch=0)


def test_a_schedule_registered_elsewhere_is_built_by_its_name(make_config: Any) -> None:
    class Half(LRSchedule):
        def main_lr(self, base_lr: float, iteration: int) -> float:
            return base_lr / 2

    def build_half(cfg: Any, *, iters_per_epoch: int, max_iter: int) -> Half:
        return Half()

    SCHEDULES.register(build_half, name="HalfForTest")
    assert rates(build_lr_schedule(make_config(SCHED="HalfForTest"), iters_per_epoch=2, max_iter=5000), 3) == [0.5] * 3
