"""Ranking a gallery for queries: distances, protocols, CMC, mAP and mINP, and how results are shown."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
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
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
