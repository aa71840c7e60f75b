"""Where all is put together: from a config to a run. The only place in the engine that knows the other packages."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "DefaultTrainer": "trainer",
    "DefaultPredictor": "predictor",
    "default_setup": "setup",
    "check_output_dir": "output_dir",
    "refuse_unavailable": "availability",
    "evaluate_all": "testing",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
