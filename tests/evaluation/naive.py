"""Ranking as one would write it down: a loop over queries and items, all in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastreid_lite.data.samples import Samples


def samples(pids: Any, camids: Any = None, *, name: str = "q", paths: Any = None) -> Samples:
    """Samples with these columns; paths are made up where None."""
    columns = {"pid": np.asarray(pids, dtype=np.int64)}
    if camids is not None:
        columns["camid"] = np.asarray(camids, dtype=np.int64)
    return Samples(tuple(paths or (f"{name}{row}.jpg" for row in range(len(columns["pid"])))), columns)


def distance(left: np.ndarray, right: np.ndarray, metric: str) -> float:
    left, right = left.astype(np.float64), right.astype(np.float64)
    if metric == "euclidean":
        return float(sum((a - b) ** 2 for a, b in zip(left.tolist(), right.tolist())))
    product = float(sum(a * b for a, b in zip(left.tolist(), right.tolist())))
    lengths = [max(float(np.sqrt((side**2).sum())), 1e-12) for side in (left, right)]
    return 1.0 - product / lengths[0] / lengths[1]


def rank(
    query_features: np.ndarray,
    gallery_features: np.ndarray,
    query: Samples,
    gallery: Samples,
    *,
    metric: str,
    exclude_same: tuple[str, ...] = ("camid",),
) -> dict[int, list[bool]]:
    """For each query with a match left: hit or miss down its ranking."""
    names = exclude_same if all(name in query.columns and name in gallery.columns for name in exclude_same) else ()
    rankings = {}
    for row in range(len(query)):
        if query.pids[row] == -1:
            continue
        items = []
        for column in range(len(gallery)):
            same = bool(query.pids[row] == gallery.pids[column])
            agree = bool(names) and all(query.columns[n][row] == gallery.columns[n][column] for n in names)
            own = query.paths[row] == gallery.paths[column]
            if gallery.pids[column] == -1 or own or (same and agree):
                continue
            items.append((distance(query_features[row], gallery_features[column], metric), same))
        if any(same for _, same in items):
            rankings[row] = [same for _, same in sorted(items)]
    return rankings


def ap(hits: list[bool]) -> float:
    found = [place for place, hit in enumerate(hits, start=1) if hit]
    return sum(number / place for number, place in enumerate(found, start=1)) / len(found)


def inp(hits: list[bool]) -> float:
    found = [place for place, hit in enumerate(hits, start=1) if hit]
    return len(found) / found[-1]


def cmc(rankings: dict[int, list[bool]], max_rank: int) -> list[float]:
    return [sum(any(hits[:k]) for hits in rankings.values()) / len(rankings) for k in range(1, max_rank + 1)]
