"""Ranking a gallery for queries: distances, protocols, CMC, mAP and mINP, and how results are shown."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "ExactDistances": "distance",
    "compute_distance": "distance",
    "cosine_distance": "distance",
    "euclidean_distance": "distance",
    "MARKET": "protocol",
    "Protocol": "protocol",
    "Ranking": "ranking",
    "rank_matches": "ranking",
    "ReidEvaluator": "reid_evaluator",
    "results_table": "table",
    "plot_learning_curve": "curve",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
