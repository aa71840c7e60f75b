"""The learning rate of each step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.engine.hooks import CallbackHook, LRScheduler, PeriodicWriter
from tests.engine.toys import CountingTrainer


class WarmUpAndDecay:
    """Linear over 4 steps, then a tenth from step 8 on."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def lr(self, base_lr: float, iteration: int) -> float:
        self.asked.append(iteration)
        return base_lr * min((iteration + 1) / 4, 1.0) * (0.1 if iteration >= 8 else 1.0)


class Stepwise(WarmUpAndDecay):
    def next_change(self, iteration: int) -> int:
        return iteration + 1 if iteration < 4 else 8 if iteration < 8 else 10**9


def optimizer(*factors: float, base: int | None = None) -> torch.optim.SGD:
    groups: list[dict[str, Any]] = [
        {"params": [nn.Parameter(torch.zeros(1))], "lr": 0.5 * factor, **({"name": "base"} if base == index else {})}
        for index, factor in enumerate(factors)
    ]
    return torch.optim.SGD(groups, lr=0.5)


def rates(schedule: Any, steps: int = 12, *, start: int = 0, **options: Any) -> tuple[Any, CountingTrainer]:
    own = optimizer(1, 2, 10, **options)
    trainer, found = CountingTrainer(), []
    note = CallbackHook(before_step=lambda _: found.append([group["lr"] for group in own.param_groups]), priority=0)
    trainer.register_hooks([LRScheduler(own, schedule), note, PeriodicWriter([], 1)])
    trainer.train(start, steps)
    return found, trainer


@pytest.mark.parametrize("kind", [WarmUpAndDecay, Stepwise])
def test_every_group_keeps_its_ratio_at_every_step(kind: Any) -> None:
    found, _ = rates(kind())
    assert [row[0] for row in found] == [0.125, 0.25, 0.375, *[0.5] * 5, *[0.05] * 4]
    for row in found:
        assert row[1] == pytest.approx(2 * row[0], rel=1e-12)
        assert row[2] == pytest.approx(10 * row[0], rel=1e-12)


@pytest.mark.parametrize("kind", [WarmUpAndDecay, Stepwise])
@pytest.mark.parametrize("start", range(12))
def test_a_run_that_begins_in_the_midst_has_the_tail_of_the_whole_one(kind: Any, start: int) -> None:
    whole, _ = rates(kind())
    tail, _ = rates(kind(), start=start)
    assert tail == whole[start:]


def test_a_schedule_that_says_when_it_changes_is_not_asked_in_between() -> None:
    schedule = Stepwise()
    own = optimizer(1)
    trainer = CountingTrainer()
    trainer.register_hooks([LRScheduler(own, schedule)])
    trainer.train(0, 12)
    assert schedule.asked == [0, 1, 2, 3, 4, 8]


def test_the_logged_rate_is_that_of_the_group_named_base_or_the_first() -> None:
    _, trainer = rates(WarmUpAndDecay(), base=1)
    assert [value for value, _ in trainer.storage.history("lr")][:4] == [0.25, 0.5, 0.75, 1.0]
    _, trainer = rates(WarmUpAndDecay())
    assert [value for value, _ in trainer.storage.history("lr")][:4] == [0.125, 0.25, 0.375, 0.5]
    own = optimizer(1, 2)
    trainer = CountingTrainer()
    trainer.register_hooks([LRScheduler(own, WarmUpAndDecay(), logged_group=1), PeriodicWriter([], 1)])
    trainer.train(0, 1)
    assert trainer.storage.history("lr") == [(0.25, 0)]
    with pytest.raises(ValueError, match="logged_group is 2, the optimizer has 2 groups"):
        LRScheduler(own, WarmUpAndDecay(), logged_group=2)


def test_a_rate_that_is_a_tensor_is_filled_in_place() -> None:
    rate = torch.tensor(0.5)
    own = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate)
    trainer = CountingTrainer()
    trainer.register_hooks([LRScheduler(own, WarmUpAndDecay())])
    trainer.train(0, 2)
    assert own.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25


def test_the_base_rate_is_the_one_that_the_group_states() -> None:
    own = optimizer(1)
    own.param_groups[0]["initial_lr"] = 4.0
    trainer = CountingTrainer()
    trainer.register_hooks([LRScheduler(own, WarmUpAndDecay())])
    trainer.train(0, 1)
    assert own.param_groups[0]["lr"] == 1.0
    own.param_groups[0]["base_lr"] = 8.0
    trainer = CountingTrainer()
    trainer.register_hooks([LRScheduler(own, WarmUpAndDecay())])
    trainer.train(0, 1)
    assert own.param_groups[0]["lr"] == 2.0
