"""What happens around a step: one hook a file."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "HookBase": "base",
    "PRODUCE": "base",
    "CHANGE": "base",
    "READ": "base",
    "WRITE": "base",
    "CallbackHook": "callback",
    "IterationTimer": "timer",
    "LRScheduler": "lr_scheduler",
    "PeriodicWriter": "periodic_writer",
    "CheckpointHook": "checkpoint",
    "PeriodicCheckpointer": "checkpoint",
    "BestCheckpointer": "checkpoint",
    "EvalHook": "evaluation",
    "EarlyStopping": "early_stopping",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
