"""A tensor on the CPU that says it is on a device, and counts how often the host reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_READS = {"tolist", "item", "cpu", "__float__", "__int__", "__bool__", "numpy", "to"}


class FarTensor(torch.Tensor):
    reads = 0

    @classmethod
    def of(cls, value: float) -> FarTensor:
        return torch.tensor(float(value)).as_subclass(cls)

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in _READS:
            FarTensor.reads += 1
        return super().__torch_function__(func, types, args, kwargs or {})
