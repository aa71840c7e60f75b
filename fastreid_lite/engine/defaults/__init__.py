"""Where all is put together: from a config to a run. The only place in the engine that knows the other packages."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "DefaultTrainer": "trainer",
    "DefaultPredictor": "predictor",
    "default_setup": "setup",
    "check_output_dir": "output_dir",
    "refuse_unavailable": "availability",
    "evaluate_all": "testing",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
