"""Small stand-ins: a model, a loader that knows its position, a trainer that counts, a hook that writes down."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from fastreid_lite.engine.hook_table import POINTS
from fastreid_lite.engine.hooks.base import READ, HookBase
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.engine.train_loop import TrainerBase
from fastreid_lite.engine.triggers import Trigger


class ToyModel(nn.Module):
    """A linear layer with batch norm before it, and two losses."""

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(4, 2)

    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        images = batch["images"] if isinstance(batch, dict) else batch
        out = self.linear(self.dropout(self.norm(images)))
        return {"loss_square": out.square().mean(), "loss_far": (out - 1).abs().mean()}


class PositionedLoader:
    """``batches`` batches an epoch; each is a function of (epoch, batch), and the loader can go to any of them."""

    def __init__(self, batches: int = 5, *, size: int = 6) -> None:
        self.batches = batches
        self.size = size
        self.epoch = self.batch = 0
        self.served: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self.batches

    def set_position(self, epoch: int, batch: int) -> None:
        self.epoch, self.batch = epoch, batch

    def __iter__(self) -> Iterator[torch.Tensor]:
        epoch, first = self.epoch, self.batch
        self.epoch, self.batch = epoch + 1, 0
        for batch in range(first, self.batches):
            self.served.append((epoch, batch))
            yield toy_batch(epoch, batch, self.size)


def toy_batch(epoch: int, batch: int, size: int = 6) -> torch.Tensor:
    """(size, 4) float32, the same at every call."""
    generator = torch.Generator().manual_seed(1000 * epoch + batch)
    return torch.randn(size, 4, generator=generator)


def toy_trainer(loader: Any = None, *, seed: int = 0, **options: Any) -> SimpleTrainer:
    """A :class:`SimpleTrainer` of a :class:`ToyModel` with SGD, its weights drawn from ``seed``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ToyModel(dropout=options.pop("dropout", 0.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return SimpleTrainer(model, PositionedLoader() if loader is None else loader, optimizer, **options)


class CountingTrainer(TrainerBase):
    """Writes down the step in progress and, where it has a loader, the batch; computes nothing."""

    def __init__(self, loader: Any = None, **options: Any) -> None:
        super().__init__()
        self.steps: list[int] = []
        self.batches: list[Any] = []
        if loader is not None:
            self.set_loader(loader, **options)

    def run_step(self) -> None:
        self.steps.append(self.iter)
        if self.data_loader is not None:
            self.batches.append(self.next_window())
        self.after_backward()
        self.storage.put_scalar("loss", float(self.iter))


class Recorder(HookBase):
    """Writes (point, iter) of everything that happens into ``seen``."""

    def __init__(self, seen: list[tuple[str, int]] | None = None, *, trigger: Trigger | None = None) -> None:
        self.seen: list[tuple[str, int]] = [] if seen is None else seen
        self.trigger = trigger
        weak = weakref.proxy(self)
        for point in POINTS:
            setattr(self, point, lambda point=point: weak.seen.append((point, weak.trainer.iter)))

    def __call__(self, trainer: TrainerBase) -> None:
        self.seen.append(("boundary", trainer.iter))

    def finish(self, trainer: TrainerBase) -> None:
        self.seen.append(("finish", trainer.iter))


class Turn(HookBase):
    """Writes (name, steps done) into ``seen`` where its trigger fires, and does ``act`` there."""

    def __init__(
        self, name: str, trigger: Trigger, seen: list[tuple[str, int]], *, priority: int = READ, act: Any = None
    ) -> None:
        self.name = name
        self.trigger = trigger
        self.priority = priority
        self._seen = seen
        self._act = act

    def __call__(self, trainer: TrainerBase) -> None:
        self._seen.append((str(self.name), trainer.iter + 1))
        if self._act is not None:
            self._act(trainer)
