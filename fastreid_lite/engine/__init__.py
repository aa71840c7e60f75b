"""The kernel: one loop, one table of who is called where, one counter, one storage, one state."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
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
    "hooks": "",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
