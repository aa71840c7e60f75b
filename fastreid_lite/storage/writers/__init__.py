"""Where published numbers go: one writer a file."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "EventWriter": "base",
    "JSONWriter": "json_lines",
    "CommonMetricPrinter": "console",
    "TensorboardXWriter": "tensorboard",
    "ProgressBarWriter": "progress_bar",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
