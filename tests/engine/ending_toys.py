"""What tests of endings share: a run with everything that a real one has, and a hook that asks how it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import EvalHook, IterationTimer, LRScheduler, PeriodicCheckpointer, PeriodicWriter
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.train_loop import TrainerBase
from fastreid_lite.storage.writers import JSONWriter


class Outcome(HookBase):
    """Asks for the outcome where runs end."""

    def __init__(self) -> None:
        self.found: list[tuple[str | None, int]] = []

    def after_train(self) -> None:
        self.found.append((self.trainer.outcome, self.trainer.iter))


def full(
    folder: Path, trainer: TrainerBase, evaluations: list[int], *, period: int = 100, log: int = 20
) -> TrainerBase:
    """With everything that a real run has: log lines, checkpoints, evaluation."""
    folder.mkdir(exist_ok=True)

    class Constant:
        def lr(self, base_lr: float, iteration: int) -> float:
            return base_lr

    def evaluate() -> dict[str, float]:
        evaluations.append(trainer.iter)
        return {"score": 50.0 + trainer.iter}

    trainer.register_hooks(
        [
            IterationTimer(8),
            LRScheduler(trainer.optimizer, Constant()) if hasattr(trainer, "optimizer") else None,
            EvalHook(period, evaluate),
            PeriodicCheckpointer(Checkpointer(folder), period),
            PeriodicWriter([JSONWriter(folder / "metrics.json")], log),
        ]
    )
    return trainer


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.json").read_text().splitlines()]
