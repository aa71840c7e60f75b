"""What the trainer adds to a step, in microseconds over a bare loop.

The step is a 16-to-4 linear model with two losses, batch 8 in memory, SGD, one thread, one process. Every contender
takes short turns in the same process, one after the other, many rounds: the machine's noise then hits all alike. For
each the fastest tenth of its turns counts.

    python benchmarks/step_overhead.py [--rounds 60] [--steps 500]
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import SimpleTrainer, TrainerBase, hooks
from fastreid_lite.storage.writers import CommonMetricPrinter, JSONWriter

Turn = Callable[[int], None]


class TwoLosses(nn.Module):
    """The model of the budget: one linear layer, two losses."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.linear(batch)
        return {"loss_a": out.square().mean(), "loss_b": out.abs().mean()}


class Constant:
    """A schedule that costs what any schedule costs."""

    def lr(self, base_lr: float, iteration: int) -> float:
        return base_lr * (1.0 - iteration * 1e-12)


def parts() -> tuple[nn.Module, list[torch.Tensor], torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = TwoLosses()
    return model, [torch.randn(8, 16) for _ in range(64)], torch.optim.SGD(model.parameters(), lr=1e-3)


def bare_loop() -> Turn:
    model, data, optimizer = parts()

    def turn(steps: int) -> None:
        for step in range(steps):
            loss = sum(model(data[step % 64]).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return turn


def default_hooks(folder: Path) -> Turn:
    """Timer, LR, writer every 20 steps (JSON and console), checkpoint and evaluation registered and not due."""
    trainer = SimpleTrainer(*parts())
    checkpointer = Checkpointer(folder)
    writers = [JSONWriter(folder / "metrics.json"), CommonMetricPrinter(10**9)]
    trainer.register_hooks(
        [
            hooks.IterationTimer(8),
            hooks.LRScheduler(trainer.optimizer, Constant()),
            hooks.EvalHook(10**9, dict),
            hooks.PeriodicCheckpointer(checkpointer, 10**9),
            hooks.BestCheckpointer(checkpointer, "set/metric"),
            hooks.PeriodicWriter(writers, 20),
        ]
    )
    return endless_turn(trainer)


def endless_turn(trainer: TrainerBase) -> Turn:
    """As a turn inside one run: the run is left by ``interrupt`` and gone on with, so that no ending is paid."""
    left = [0]

    def count() -> None:
        left[0] -= 1
        if left[0] <= 0:
            trainer.interrupt()

    inner = trainer.run_step

    def run_step() -> None:
        inner()
        count()

    trainer.run_step = run_step  # type: ignore[method-assign]

    def turn(steps: int) -> None:
        left[0] = steps
        trainer.train(trainer.iter, 10**9)

    return turn


def many_hooks(number: int) -> Turn:
    """``number`` hooks that each use two points and do nothing there."""
    trainer = SimpleTrainer(*parts())
    trainer.register_hooks(
        [
            hooks.CallbackHook(name=f"hook{i}", before_step=lambda trainer: None, after_step=lambda trainer: None)
            for i in range(number)
        ]
    )
    return endless_turn(trainer)


def idle_hooks(number: int) -> Turn:
    """``number`` hooks that have a trigger and are not due."""
    trainer = SimpleTrainer(*parts())
    trainer.register_hooks(
        [
            hooks.CallbackHook(name=f"hook{i}", trigger=(10**9, "iteration"), at_boundary=lambda trainer: None)
            for i in range(number)
        ]
    )
    return endless_turn(trainer)


def ignite_engine() -> Turn | None:
    """pytorch-ignite's Engine around the same step, nothing attached; None where it is not installed."""
    try:
        from ignite.engine import Engine
    except ImportError:
        return None
    model, data, optimizer = parts()

    def update(engine: Any, batch: torch.Tensor) -> float:
        loss = sum(model(batch).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    engine = Engine(update)

    def turn(steps: int) -> None:
        engine.run((data * (steps // 64 + 1))[:steps], max_epochs=1)

    return turn


def measure(contenders: dict[str, Turn], rounds: int, steps: int) -> dict[str, float]:
    """Microseconds a step: the median of the fastest tenth of the turns, by name."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in contenders.values():
        turn(steps)
    for _ in range(rounds):
        for name, turn in contenders.items():
            start = time.perf_counter()
            turn(steps)
            times[name].append((time.perf_counter() - start) / steps * 1e6)
    return {name: statistics.median(sorted(values)[: max(len(values) // 10, 3)]) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("fastreid_lite").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        contenders: dict[str, Turn | None] = {
            "bare loop": bare_loop(),
            "SimpleTrainer, nothing registered": endless_turn(SimpleTrainer(*parts())),
            "all default hooks": default_hooks(Path(folder)),
            "10 hooks at two points": many_hooks(10),
            "40 hooks at two points": many_hooks(40),
            "40 hooks not due": idle_hooks(40),
            "pytorch-ignite, nothing attached": ignite_engine(),
        }
        present = {name: turn for name, turn in contenders.items() if turn is not None}
        found = measure(present, options.rounds, options.steps)
    bare = found["bare loop"]
    print(f"{'bare loop':36s} {bare:8.1f} us a step")
    for name, value in found.items():
        if name != "bare loop":
            print(f"{name:36s} {value - bare:+8.1f} us over the bare loop")
    growth = (found["40 hooks at two points"] - found["10 hooks at two points"]) / 30
    print(f"{'growth':36s} {growth:+8.2f} us a hook with two points")
    for name in sorted(set(contenders) - set(present)):
        print(f"{name:36s} not installed")


if __name__ == "__main__":
    main()
