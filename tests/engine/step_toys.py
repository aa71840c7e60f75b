"""What the tests of the step share: models with hand-made losses, trainers over them, a run that is broken off."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from fastreid_lite.engine.hooks.base import WRITE, HookBase
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.engine.triggers import every

NAN, INF = float("nan"), float("inf")


class Weight(nn.Module):
    """One weight w, a scalar or ``size`` of them; ``losses(w, batch)`` gives what the model returns."""

    def __init__(self, losses: Callable[[torch.Tensor, Any], Any], *, start: float = 0.0, size: int = 0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.full((size,) if size else (), start))
        self._function = losses

    def forward(self, batch: Any) -> Any:
        return self._function(self.w, batch)


def weight_trainer(
    losses: Callable[[torch.Tensor, Any], Any],
    loader: Iterable[Any] = (0.0,),
    *,
    rate: float = 1.0,
    momentum: float = 0.0,
    fused: bool = False,
    start: float = 0.0,
    size: int = 0,
    **options: Any,
) -> SimpleTrainer:
    """Plain SGD over a :class:`Weight`."""
    model = Weight(losses, start=start, size=size)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum, fused=fused)
    return SimpleTrainer(model, list(loader), optimizer, options.pop("amp_enabled", False), **options)


def weight_of(trainer: SimpleTrainer) -> float:
    return float(next(trainer.model.parameters()).detach().reshape(-1)[0])


def published(trainer: SimpleTrainer) -> dict[str, float]:
    """What was put, published now."""
    trainer.publish()
    return {name: value.value for name, value in trainer.storage.published().items()}


class PowerCutError(Exception):
    """The power went."""


class BreakAt(HookBase):
    """Keeps the bytes of a checkpoint at the boundary of ``steps`` steps done, and ends the run there, like a crash."""

    priority = WRITE - 1

    def __init__(self, steps: int) -> None:
        self.trigger = every(1)
        self._steps = steps
        self.file = b""

    def __call__(self, trainer: Any) -> None:
        if trainer.iter + 1 == self._steps:
            self.file = to_bytes(trainer.state_dict())
            raise PowerCutError


def to_bytes(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Any:
    """As a checkpoint is read: under torch's defaults."""
    return torch.load(io.BytesIO(data))


CLOCK = ("time", "data_time", "hook_time", "images_per_second", "eta_seconds")


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    """A state without what the clock says, and without the length of the log, in which that stands."""
    state = copy.deepcopy(state)
    inner = state["trainer"]
    inner.pop("seconds")
    for numbers in (inner["storage"]["histories"], *(rank["storage"] for rank in inner["ranks"])):
        for name in CLOCK:
            numbers.pop(name, None)
    for writer in inner["hooks"].get("PeriodicWriter", {}).get("writers", []):
        writer.pop("length"), writer.pop("checksum")
    return state


def differences(first: Any, second: Any, where: str = "state") -> list[str]:
    """Where two trees of containers, numbers and tensors are not equal byte for byte."""
    if type(first) is not type(second):
        return [f"{where}: {type(first).__name__} and {type(second).__name__}"]
    if isinstance(first, dict):
        found = [f"{where}: {key}" for key in first.keys() ^ second.keys()]
        return found + [
            line for key in first if key in second for line in differences(first[key], second[key], f"{where}.{key}")
        ]
    if isinstance(first, list | tuple):
        if len(first) != len(second):
            return [f"{where}: {len(first)} and {len(second)} entries"]
        return [line for i, pair in enumerate(zip(first, second)) for line in differences(*pair, f"{where}[{i}]")]
    if isinstance(first, torch.Tensor):
        equal = first.dtype == second.dtype and first.shape == second.shape
        same = equal and first.contiguous().reshape(-1).view(torch.uint8).equal(
            second.contiguous().reshape(-1).view(torch.uint8)
        )
        return [] if same else [f"{where}: tensors differ"]
    return [] if first == second or (first != first and second != second) else [f"{where}: {first!r} and {second!r}"]
