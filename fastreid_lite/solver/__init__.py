"""Parameter groups, optimizers, and the learning rate as a function of the iteration."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SUBMODULE_OF = {
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

__all__ = sorted(_SUBMODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SUBMODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
