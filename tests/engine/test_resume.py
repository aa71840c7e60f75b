"""A run that was broken off and resumed ends with the bytes of the run that never was."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.storage.writers import JSONWriter
from fastreid_lite.utils import comm
from tests.engine.step_toys import CLOCK, BreakAt, PowerCutError, comparable, differences, from_bytes, to_bytes
from tests.engine.toys import PositionedLoader, ToyModel
from tests.processes import run_processes

TOTAL = 17


class Counter(HookBase):
    """Keeps state, and draws from every global generator as user code may."""

    def __init__(self) -> None:
        self.drawn: list[float] = []
        self.trigger = hooks.PeriodicWriter([], 3).trigger & hooks.PeriodicWriter([], 2).trigger

    def before_step(self) -> None:
        self.drawn = [*self.drawn[-2:], random.random() + float(np.random.rand()) + float(torch.rand(()))]

    def __call__(self, trainer: Any) -> None:
        self.drawn.append(-1.0)

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": list(self.drawn)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn = list(state["drawn"])


class Decay:
    def lr(self, base_lr: float, iteration: int) -> float:
        return base_lr * (1 - iteration / 100)


def make(folder: Path, **options: Any) -> SimpleTrainer:
    """A run with everything on: momentum, dropout, batch norm, all usual hooks; no global seed is set here."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ToyModel(dropout=0.4)
    kind = options.pop("optimizer", "sgd")
    optimizer: torch.optim.Optimizer
    if kind == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, fused=kind == "fused")
    loader = PositionedLoader(options.pop("batches", 5))
    wrapped = DistributedDataParallel(model) if comm.is_distributed() else model
    trainer = SimpleTrainer(wrapped, loader, optimizer, options.pop("amp_enabled", False), **options)
    folder.mkdir(exist_ok=True, parents=True)
    checkpointer = Checkpointer(folder, keep=2)
    writers = [JSONWriter(folder / "metrics.json")] if comm.is_main_process() else []
    trainer.register_hooks(
        [
            hooks.IterationTimer(6),
            hooks.LRScheduler(optimizer, Decay()),
            Counter(),
            hooks.EvalHook(3, lambda: {"set": {"metric": float((trainer.iter * 7) % 5)}}),
            hooks.BestCheckpointer(checkpointer, "set/metric"),
            hooks.PeriodicWriter(writers, 4),
        ]
    )
    return trainer


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.json").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCK} for line in lines]


def unbroken(folder: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    seed(5 + comm.get_rank())
    trainer = make(folder, **options)
    trainer.train(0, TOTAL)
    return comparable(from_bytes(to_bytes(trainer.state_dict()))), metrics(folder)


def broken(folder: Path, breaks: list[int], **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same run in parts, each in a trainer of its own, from other random states."""
    file = b""
    for number, steps in enumerate([*breaks, TOTAL]):
        seed(5 + comm.get_rank() if number == 0 else 1000 + number)
        trainer = make(folder, **options)
        if file:
            trainer.load_state_dict(from_bytes(file))
            assert trainer.iter == breaks[number - 1]
        if steps == TOTAL:
            trainer.train(trainer.iter, TOTAL)
            return comparable(from_bytes(to_bytes(trainer.state_dict()))), metrics(folder)
        crash = BreakAt(steps)
        trainer.register_hooks([crash])
        with pytest.raises(PowerCutError):
            trainer.train(trainer.iter, TOTAL)
        file = crash.file
    raise AssertionError


@pytest.fixture(autouse=True)
def global_state() -> Any:
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    torch.set_rng_state(kept[2])


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    found = unbroken(tmp_path_factory.mktemp("unbroken"))
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    torch.set_rng_state(kept[2])
    return found


@pytest.mark.parametrize("steps", range(1, TOTAL))
def test_resuming_after_any_step_changes_no_byte(steps: int, reference: Any, tmp_path: Path) -> None:
    state, lines = broken(tmp_path, [steps])
    assert not differences(reference[0], state)
    assert lines == reference[1]


def test_breaking_off_again_and_again_changes_no_byte(reference: Any, tmp_path: Path) -> None:
    state, lines = broken(tmp_path, [2, 3, 5, 11, 16])
    assert not differences(reference[0], state) and lines == reference[1]


OPTIONS: dict[str, dict[str, Any]] = {
    "accumulation with a short last window": {"accumulate_steps": 2},
    "windows over two epochs of the loader": {"accumulate_steps": 3, "batches": 7},
    "float16": {"amp_enabled": True, "amp_dtype": "float16"},
    "bfloat16": {"amp_enabled": True, "amp_dtype": "bfloat16"},
    "float16 with accumulation": {"amp_enabled": True, "amp_dtype": "float16", "accumulate_steps": 2},
    "clipping and AdamW": {"clipper": GradientClipper("norm", 0.1), "optimizer": "adamw"},
    "deferred": {"nonfinite_mode": "deferred", "optimizer": "fused"},
    "deferred float16": {
        "nonfinite_mode": "deferred", "optimizer": "fused", "amp_enabled": True, "amp_dtype": "float16",
    },
    "skip": {"nonfinite_policy": "skip"},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_holds_with(name: str, tmp_path: Path) -> None:
    options = OPTIONS[name]
    state, lines = unbroken(tmp_path / "unbroken", **options)
    for breaks in ([4], [6], [8, 13]):
        again, again_lines = broken(tmp_path / f"broken{breaks}", breaks, **options)
        assert not differences(state, again), breaks
        assert lines == again_lines


def test_a_scale_that_changes_on_the_way_comes_back(tmp_path: Path) -> None:
    options = {"amp_enabled": True, "amp_dtype": "float16"}

    def scaled(trainer: SimpleTrainer) -> SimpleTrainer:
        # Far too large, and growing every third step: it overflows now and then.
        trainer.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3)
        return trainer

    seed(5)
    whole = scaled(make(tmp_path / "whole", **options))
    whole.train(0, TOTAL)
    seed(5)
    first = scaled(make(tmp_path / "parts", **options))
    crash = BreakAt(7)
    first.register_hooks([crash])
    with pytest.raises(PowerCutError):
        first.train(0, TOTAL)
    second = make(tmp_path / "parts", **options)
    second.load_state_dict(from_bytes(crash.file))
    second.train(second.iter, TOTAL)
    assert whole.scaler is not None and whole.scaler.get_scale() < 2.0**127
    states = [comparable(from_bytes(to_bytes(trainer.state_dict()))) for trainer in (whole, second)]
    assert not differences(*states)


def both_ways(folder: Path) -> list[str]:
    found: list[str] = []
    scaled: dict[str, Any] = {"accumulate_steps": 2, "amp_enabled": True, "amp_dtype": "float16"}
    for number, (options, breaks) in enumerate((({}, [8, 13]), (scaled, [4]))):
        own = folder / f"rank{comm.get_rank()}" / str(number)
        state, lines = _with_metrics(unbroken, own / "unbroken", options)
        again, again_lines = _with_metrics(broken, own / "broken", options, breaks)
        found += differences(state, again)
        found += [] if lines == again_lines else [f"{lines} and {again_lines}"]
    return found


def _with_metrics(run: Any, folder: Path, options: dict[str, Any], *arguments: Any) -> Any:
    """Rank 1 writes no log."""
    folder.mkdir(parents=True)
    if not comm.is_main_process():
        (folder / "metrics.json").write_text("")
    return run(folder, *arguments, **options)


def test_two_processes_resume_exactly(tmp_path: Path) -> None:
    assert run_processes(both_ways, 2, tmp_path) == [[], []]
