"""What happens around a step: one hook a file."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
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
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
