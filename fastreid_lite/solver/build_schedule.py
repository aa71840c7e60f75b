"""From the SOLVER section to a learning-rate schedule.

Two ways of counting, chosen by SOLVER.STEPS_FROM:

- "warmup_end", the default, is fast-reid's. Its main schedule moves at the ends of epochs, and only at ends of epochs
  with the warm-up done by then and DELAY_EPOCHS behind them. Milestones and the cosine count these moves. So with 202
  iterations an epoch and a warm-up of 2000, STEPS (40, 90) lower the rate in epochs 49 and 99 (from 0). Published
  results of fast-reid were made with it. Where something that the schedule counts is given in iterations (STEPS_ITERS
  or DELAY_ITERS; MAX_ITER for the cosine), it moves with every iteration after the warm-up and the delay instead.
- "start" is the plain meaning: milestones count from iteration 0, and the cosine runs from the delay to the end of the
  run, iteration by iteration. The warm-up multiplies whatever rate holds at the time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from fastreid_lite.solver.schedules import CosineSchedule, LRSchedule, MultiStepSchedule, StepClock
from fastreid_lite.solver.warmup import Warmup
from fastreid_lite.utils.registry import Registry, lookup

SCHEDULES = Registry("learning-rate schedule", "SOLVER.SCHED")
"""Functions ``(cfg, *, iters_per_epoch, max_iter) -> LRSchedule`` by their name in SOLVER.SCHED."""

logger = logging.getLogger(__name__)


def build_lr_schedule(cfg: Any, *, iters_per_epoch: int, max_iter: int) -> LRSchedule:
    """The schedule that ``cfg.SOLVER`` asks for. Settings that cannot take effect are warned of.

    Args:
        cfg: the whole config.
        iters_per_epoch: optimizer steps in an epoch, at least 1.
        max_iter: optimizer steps in the whole run, at least 0.

    Raises:
        KeyError: unknown SOLVER.SCHED, SOLVER.WARMUP_METHOD or SOLVER.STEPS_FROM.
        ValueError: a number out of its range.
    """
    if iters_per_epoch < 1 or max_iter < 0:
        raise ValueError(
            f"a schedule needs at least 1 iteration an epoch and 0 in the run, got iters_per_epoch={iters_per_epoch} "
            f"and max_iter={max_iter}"
        )
    build: Callable[..., LRSchedule] = SCHEDULES.get(cfg.SOLVER.SCHED)
    schedule = build(cfg, iters_per_epoch=iters_per_epoch, max_iter=max_iter)
    warmup_iters = cfg.SOLVER.WARMUP_ITERS
    if 0 < max_iter <= warmup_iters:
        logger.warning(
            "SOLVER.WARMUP_ITERS %s is not shorter than the run (%s): the base learning rate is never reached",
            warmup_iters,
            _run_length(cfg.SOLVER, max_iter),
        )
    return schedule


@SCHEDULES.register(name="MultiStepLR")
def build_multistep(cfg: Any, *, iters_per_epoch: int, max_iter: int) -> MultiStepSchedule:
    """SOLVER.STEPS (epochs) or STEPS_ITERS, GAMMA, DELAY_EPOCHS or DELAY_ITERS, STEPS_FROM and the WARMUP keys."""
    solver = cfg.SOLVER
    steps, steps_in_iters = _twin(solver, "STEPS", "STEPS_ITERS")
    delay, delay_in_iters = _twin(solver, "DELAY_EPOCHS", "DELAY_ITERS")
    from_start = _counts_from_start(solver)
    milestones = list(steps)
    if from_start:
        clock = StepClock()
        if delay:
            logger.warning(
                "SOLVER.%s %s has no effect on milestones that count from the start (SOLVER.STEPS_FROM 'start')",
                "DELAY_ITERS" if delay_in_iters else "DELAY_EPOCHS",
                delay,
            )
    else:
        clock = _clock_after_warmup(
            solver, iters_per_epoch=iters_per_epoch, in_iterations=steps_in_iters or delay_in_iters
        )
    if clock.unit == 1 and not steps_in_iters:
        milestones = [step * iters_per_epoch for step in milestones]
    schedule = MultiStepSchedule(milestones, gamma=solver.GAMMA, clock=clock, warmup=_warmup(solver))
    _warn_of_late_milestones(solver, steps, milestones, clock=clock, max_iter=max_iter)
    return schedule


@SCHEDULES.register(name="CosineAnnealingLR")
def build_cosine(cfg: Any, *, iters_per_epoch: int, max_iter: int) -> CosineSchedule:
    """SOLVER.ETA_MIN_LR, DELAY_EPOCHS or DELAY_ITERS, MAX_EPOCH or MAX_ITER, STEPS_FROM and the WARMUP keys."""
    solver = cfg.SOLVER
    delay, delay_in_iters = _twin(solver, "DELAY_EPOCHS", "DELAY_ITERS")
    delay_iters = delay if delay_in_iters else delay * iters_per_epoch
    if _counts_from_start(solver):
        clock = StepClock(start=delay_iters)
        length = max_iter - 1 - delay_iters
    elif delay_in_iters or getattr(solver, "MAX_ITER", None) is not None:
        clock = _clock_after_warmup(solver, iters_per_epoch=iters_per_epoch, in_iterations=True)
        length = max_iter - 1 - clock.start
    else:
        clock = _clock_after_warmup(solver, iters_per_epoch=iters_per_epoch, in_iterations=False)
        epochs = math.ceil(max_iter / iters_per_epoch)
        length = epochs - max(math.ceil(solver.WARMUP_ITERS / iters_per_epoch), delay)
    schedule = CosineSchedule(length, eta_min=solver.ETA_MIN_LR, clock=clock, warmup=_warmup(solver))
    if 0 < max_iter <= delay_iters:
        key = "DELAY_ITERS" if delay_in_iters else "DELAY_EPOCHS"
        logger.warning(
            "SOLVER.%s %s is not shorter than the run (%s): the cosine never begins",
            key,
            delay,
            _run_length(solver, max_iter),
        )
    if solver.ETA_MIN_LR > solver.BASE_LR:
        logger.warning(
            "SOLVER.ETA_MIN_LR %s is above SOLVER.BASE_LR %s: the rate stays at its base",
            solver.ETA_MIN_LR,
            solver.BASE_LR,
        )
    return schedule


def _warmup(solver: Any) -> Warmup:
    return Warmup(iters=solver.WARMUP_ITERS, factor=solver.WARMUP_FACTOR, method=solver.WARMUP_METHOD)


def _twin(solver: Any, in_epochs: str, in_iterations: str) -> tuple[Any, bool]:
    """The value in force of a key that has a twin in iterations, and whether it is the twin's.

    The twin that is None is not given; both None, or neither, falls to the one in iterations where it has a value.
    """
    twin = getattr(solver, in_iterations, None)
    value = twin if twin is not None else getattr(solver, in_epochs)
    if value is None:
        raise ValueError(f"neither SOLVER.{in_epochs} nor SOLVER.{in_iterations} has a value; give one of them")
    if not isinstance(value, Sequence) and value < 0:
        name = in_iterations if twin is not None else in_epochs
        raise ValueError(f"SOLVER.{name} is {value!r}; expected 0 or more")
    return value, twin is not None


def _counts_from_start(solver: Any) -> bool:
    choices: dict[str, Any] = {"warmup_end": False, "start": True}
    steps_from = getattr(solver, "STEPS_FROM", "warmup_end")
    return bool(lookup(choices, steps_from, "way of counting steps", "SOLVER.STEPS_FROM"))


def _clock_after_warmup(solver: Any, *, iters_per_epoch: int, in_iterations: bool) -> StepClock:
    """fast-reid's clock: it moves at the end of epoch i (from 0) if warm-up and delay are over by then."""
    delay, delay_in_iters = _twin(solver, "DELAY_EPOCHS", "DELAY_ITERS")
    warmup_iters = solver.WARMUP_ITERS
    if in_iterations:
        delay_iters = delay if delay_in_iters else delay * iters_per_epoch
        return StepClock(start=max(warmup_iters, delay_iters))
    # The epoch in which the warm-up ends counts as the first one of the main schedule, hence the - 1.
    return StepClock(unit=iters_per_epoch, start=max(delay, math.ceil(warmup_iters / iters_per_epoch) - 1, 0))


def _warn_of_late_milestones(
    solver: Any, steps: Sequence[float], milestones: Sequence[float], *, clock: StepClock, max_iter: int
) -> None:
    falls_at = [clock.first_iteration(math.ceil(milestone)) for milestone in milestones]
    late = [(step, iteration) for step, iteration in zip(steps, falls_at) if iteration >= max_iter]
    if late and max_iter > 0:
        logger.warning(
            "SOLVER.%s %s: the milestones %s would take effect at iterations %s, not within the run (%s); they are "
            "ignored",
            "STEPS_ITERS" if getattr(solver, "STEPS_ITERS", None) is not None else "STEPS",
            tuple(steps),
            ", ".join(str(step) for step, _ in late),
            ", ".join(str(iteration) for _, iteration in late),
            _run_length(solver, max_iter),
        )


def _run_length(solver: Any, max_iter: int) -> str:
    if getattr(solver, "MAX_ITER", None) is not None:
        return f"SOLVER.MAX_ITER {max_iter}"
    return f"SOLVER.MAX_EPOCH {getattr(solver, 'MAX_EPOCH', None)}, {max_iter} iterations"
