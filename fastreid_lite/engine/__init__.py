"""The kernel: one loop, one table of who is called where, one counter, one storage, one state."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "TrainerBase": "train_loop",
    "SimpleTrainer": "simple_trainer",
    "HookBase": "hooks.base",
    "GradientClipper": "clipping",
    "NonFiniteError": "finite",
    "inference_on_dataset": "evaluator",
    "Trigger": "triggers",
    "every": "triggers",
    "AtEnd": "triggers",
    "At": "triggers",
    "Once": "triggers",
    "Within": "triggers",
    "Interval": "triggers",
    "Function": "triggers",
    "BestValue": "value_triggers",
    "EarlyStop": "value_triggers",
    "DefaultTrainer": "defaults.trainer",
    "DefaultPredictor": "defaults.predictor",
    "default_setup": "defaults.setup",
}
__all__ = [*_EXPORTS, "hooks"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    if name == "hooks":
        return importlib.import_module(f"{__name__}.hooks")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
