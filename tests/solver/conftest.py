from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

DEFAULTS: dict[str, Any] = {
    "OPT": "Adam",
    "BASE_LR": 3.5e-4,
    "WEIGHT_DECAY": 5e-4,
    "WEIGHT_DECAY_NORM": 5e-4,
    "WEIGHT_DECAY_BIAS": 5e-4,
    "BIAS_LR_FACTOR": 1.0,
    "HEADS_LR_FACTOR": 1.0,
    "MOMENTUM": 0.9,
    "NESTEROV": False,
    "SCHED": "MultiStepLR",
    "STEPS": (30, 55),
    "STEPS_ITERS": None,
    "STEPS_FROM": "warmup_end",
    "GAMMA": 0.1,
    "DELAY_EPOCHS": 0,
    "DELAY_ITERS": None,
    "MAX_EPOCH": 120,
    "MAX_ITER": None,
    "ETA_MIN_LR": 1e-7,
    "WARMUP_ITERS": 1000,
    "WARMUP_FACTOR": 0.1,
    "WARMUP_METHOD": "linear",
    "FREEZE_ITERS": 0,
}


def solver_config(**changes: Any) -> Any:
    """A config that has the MODEL and SOLVER keys which the solver reads, changed by ``changes``."""
    model = SimpleNamespace(FREEZE_LAYERS=changes.pop("FREEZE_LAYERS", []))
    return SimpleNamespace(MODEL=model, SOLVER=SimpleNamespace(**{**DEFAULTS, **changes}))


@pytest.fixture
def make_config() -> Any:
    return solver_config
