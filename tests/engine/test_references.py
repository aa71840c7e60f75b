"""Nothing is kept alive: no trainer by its hooks, no batch and no graph by the loop."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import SimpleTrainer
from fastreid_lite.engine.hooks import (
    BestCheckpointer,
    CallbackHook,
    EarlyStopping,
    EvalHook,
    IterationTimer,
    LRScheduler,
    PeriodicCheckpointer,
    PeriodicWriter,
)
from tests.engine.toys import PositionedLoader, Recorder, ToyModel, toy_batch, toy_trainer


class Constant:
    def lr(self, base_lr: float, iteration: int) -> float:
        return base_lr


@pytest.fixture
def no_collector() -> Iterator[None]:
    # The first optimizer of a process makes torch import more of itself, and what that keeps is not ours.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_trainer_and_all_its_hooks_die_with_the_last_reference(tmp_path: Path, no_collector: None) -> None:
    trainer = toy_trainer()
    checkpointer = Checkpointer(tmp_path)
    trainer.register_hooks(
        [
            IterationTimer(6),
            LRScheduler(trainer.optimizer, Constant()),
            EvalHook(2, lambda: {"score": 1.0}),
            PeriodicCheckpointer(checkpointer, 3),
            BestCheckpointer(checkpointer, "score"),
            EarlyStopping("score", 9),
            CallbackHook(after_step=lambda trainer: None, trigger=(2, "iteration"), at_boundary=lambda trainer: None),
            PeriodicWriter([], 2),
            Recorder(),
        ]
    )
    trainer.train(0, 6)
    hooks = [weakref.ref(hook) for hook in trainer.hook_table.hooks]
    dead = [weakref.ref(trainer), weakref.ref(trainer.storage), weakref.ref(trainer.model), *hooks]
    del trainer
    assert [reference() for reference in dead] == [None] * len(dead)


def test_a_hook_that_outlives_its_trainer_says_so() -> None:
    trainer, recorder = toy_trainer(), Recorder()
    trainer.register_hooks([recorder])
    del trainer
    with pytest.raises(ReferenceError):
        recorder.trainer.iter  # noqa: B018


class Watches(PositionedLoader):
    """Asks, before it makes a batch, whether those before are gone."""

    def __init__(self, *, sized: bool = True) -> None:
        super().__init__(3)
        self.alive: list[int] = []
        self._given: list[Any] = []

    def __iter__(self) -> Iterator[torch.Tensor]:
        for batch in range(3):
            self.alive.append(sum(reference() is not None for reference in self._given))
            yield self._make(batch)

    def _make(self, batch: int) -> torch.Tensor:
        images = toy_batch(0, batch)
        self._given.append(weakref.ref(images))
        return images


@pytest.mark.parametrize("options", [{}, {"accumulate_steps": 2}, {"amp_enabled": True}])
def test_no_batch_is_alive_when_the_next_step_fetches(options: dict[str, Any], no_collector: None) -> None:
    loader = Watches()
    trainer = toy_trainer(loader, **options)
    trainer.register_hooks([PeriodicWriter([], 2)])
    trainer.train(0, 4)
    within_a_window = options.get("accumulate_steps", 1) - 1
    assert len(loader.alive) >= 4
    assert max(loader.alive) <= within_a_window
    assert sum(reference() is not None for reference in loader._given) == 0


class Marker:
    """Lives as long as the node of the graph that it belongs to."""


class Marked(torch.autograd.Function):
    """The identity; what it remembers shows whether its graph is alive."""

    alive: list[Any] = []

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        ctx.marker = Marker()
        Marked.alive.append(weakref.ref(ctx.marker))
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient

    @staticmethod
    def graphs() -> int:
        return sum(reference() is not None for reference in Marked.alive)


@pytest.mark.parametrize("options", [{}, {"accumulate_steps": 2}, {"nonfinite_mode": "deferred"}])
def test_no_graph_is_alive_after_its_step(options: dict[str, Any], no_collector: None) -> None:
    Marked.alive.clear()

    class Model(ToyModel):
        def forward(self, batch: Any) -> dict[str, torch.Tensor]:
            return {name: Marked.apply(loss) for name, loss in super().forward(batch).items()}

    model, alive = Model(), []
    trainer = SimpleTrainer(model, PositionedLoader(), torch.optim.SGD(model.parameters(), lr=0.1), **options)
    trainer.register_hooks([CallbackHook(after_step=lambda _: alive.append(Marked.graphs())), PeriodicWriter([], 3)])
    trainer.train(0, 5)
    assert len(Marked.alive) >= 10
    assert alive == [0] * 5


def test_numbers_put_with_a_graph_are_detached_at_the_door(no_collector: None) -> None:
    Marked.alive.clear()
    trainer = toy_trainer()
    trainer.storage.put_scalar("sum", Marked.apply(torch.ones((), requires_grad=True)))
    assert Marked.graphs() == 0
