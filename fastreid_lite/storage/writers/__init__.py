"""Where published numbers go: one writer a file."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "EventWriter": "base",
    "JSONWriter": "json_lines",
    "CommonMetricPrinter": "console",
    "TensorboardXWriter": "tensorboard",
    "ProgressBarWriter": "progress_bar",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
