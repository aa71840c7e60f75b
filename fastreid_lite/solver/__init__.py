"""Parameter groups, optimizers, and the learning rate as a function of the iteration."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "CosineSchedule": "schedules",
    "LRSchedule": "schedules",
    "MultiStepSchedule": "schedules",
    "OPTIMIZERS": "build",
    "SCHEDULES": "build_schedule",
    "StepClock": "schedules",
    "Warmup": "warmup",
    "build_lr_schedule": "build_schedule",
    "build_optimizer": "build",
    "parameter_groups": "groups",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
