"""CMC, mAP and mINP from the ranks of the true matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fastreid_lite.evaluation.counting import Matches, count_closer
from fastreid_lite.evaluation.distance import ExactDistances
from fastreid_lite.evaluation.protocol import MARKET, LabelledImages, Pairs, Protocol, split_pairs
from fastreid_lite.utils import comm


@dataclass(frozen=True)
class Ranking:
    """Where the true matches of each query stand.

    Attributes:
        valid_queries: (V,) int64, the queries with a match left, ascending. Only these count.
        ranks: (M,) int64 from 1, ranks of all matches, ascending within a query, query after query.
        begin: (V + 1,) int64, where each valid query's ranks begin.
        asked: number of queries that the protocol lets take part.
        without_identity: how many of them have no image of their identity in the gallery.
    """

    valid_queries: np.ndarray
    ranks: np.ndarray
    begin: np.ndarray
    asked: int
    without_identity: int

    @property
    def filtered(self) -> int:
        """Queries whose every match the protocol took out."""
        return self.asked - self.without_identity - len(self.valid_queries)

    @property
    def first_ranks(self) -> np.ndarray:
        """(V,) int64, rank of the first match."""
        return np.asarray(self.ranks[self.begin[:-1]])

    @property
    def ap(self) -> np.ndarray:
        """(V,) float64, :meth:`average_precision` over the whole ranking."""
        return self.average_precision()

    @property
    def inp(self) -> np.ndarray:
        """(V,) float64, inverse negative penalty: matches / rank of the last one (Ye et al. 2021, equation 4)."""
        return np.asarray(np.diff(self.begin) / self.ranks[self.begin[1:] - 1])

    def average_precision(self, at: int | None = None) -> np.ndarray:
        """(V,) float64: mean over a query's R matches of (matches so far) / rank. The plain sum, no interpolation.

        Args:
            at: count only matches at this rank or before, and divide by min(R, at); None for the whole ranking.

        Raises:
            ValueError: ``at`` is below 1.
        """
        counts = np.diff(self.begin)
        hits = np.arange(1, len(self.ranks) + 1) - np.repeat(self.begin[:-1], counts)
        precision = hits / self.ranks
        if at is not None:
            if at < 1:
                raise ValueError(f"average precision at {at} asked, expected a rank from 1, or None for all")
            precision = np.where(self.ranks <= at, precision, 0.0)
            counts = np.minimum(counts, at)
        if len(counts) == 0:
            return np.zeros(0)
        return np.asarray(np.add.reduceat(precision, self.begin[:-1]) / counts)

    def cmc(self, max_rank: int = 50) -> np.ndarray:
        """(max_rank,) float64: share of the valid queries with a match at rank 1, 2, ... or before; NaN without any.

        It never falls, and goes on level where the gallery ends.

        Raises:
            ValueError: ``max_rank`` is below 1.
        """
        if max_rank < 1:
            raise ValueError(f"max_rank is {max_rank}, expected at least 1")
        if len(self.valid_queries) == 0:
            return np.full(max_rank, np.nan)
        found = np.bincount(np.minimum(self.first_ranks, max_rank + 1), minlength=max_rank + 2)
        return np.asarray(np.cumsum(found)[1 : max_rank + 1] / len(self.valid_queries))


def rank_matches(
    query_features: torch.Tensor,
    gallery_features: torch.Tensor,
    query: LabelledImages,
    gallery: LabelledImages,
    *,
    metric: str = "cosine",
    protocol: Protocol = MARKET,
    gallery_rows: np.ndarray | None = None,
    trial: int | None = None,
) -> Ranking:
    """Rank every true match of every query among the gallery.

    Ranks are those of the float64 distances of the features as given. Items at exactly the distance of a match stand
    before it, other matches in any order.

    Args:
        query_features: (Q, D) floats, all queries.
        gallery_features: (G, D) floats; with ``gallery_rows``, those rows of it.
        query: Q images.
        gallery: G images, on every process.
        metric: "cosine" or "euclidean".
        protocol: what is ranked against what.
        gallery_rows: (g,) rows of the gallery whose features this process holds; every row is on exactly one process,
            all processes call, and all get the same answer. None: this process holds all and asks nobody.
        trial: number of the draw of the protocol; None for the whole gallery.

    Raises:
        ValueError: shapes disagree, a feature is not finite (on every process), or ``metric`` is not known.
    """
    shared = gallery_rows is not None
    rows = np.arange(len(gallery.paths)) if gallery_rows is None else np.asarray(gallery_rows, dtype=np.int64)
    _check_shapes(query_features, gallery_features, len(query.paths), len(rows))
    asked, kept = protocol.query_mask(query), protocol.gallery_mask(gallery, trial)
    if not kept[rows].all():
        gallery_features = gallery_features[torch.from_numpy(kept[rows])]
        rows = rows[kept[rows]]
    exact = ExactDistances(query_features, gallery_features, metric)
    _check_finite(exact, query, gallery, rows, shared=shared)

    matches, out = split_pairs(query, gallery, protocol)
    matches = matches.select(asked[matches.rows] & kept[matches.columns])
    out = out.select(kept[out.columns])
    local, away = _local_pairs(matches, rows, len(kept)), _local_pairs(out, rows, len(kept))
    distances = exact(local.rows, local.columns)
    everywhere = (local.rows, distances)
    if shared:
        everywhere = (_gathered(local.rows), _gathered(distances))
    ordered = Matches.ordered(*everywhere, len(query.paths))
    known, known_distances = _merge(local, distances, away)
    closer = count_closer(exact, ordered, known, known_distances)
    if shared:
        closer = comm.all_reduce_sum(torch.from_numpy(closer)).numpy()

    identities = np.isin(query.columns["pid"], gallery.columns["pid"][kept])
    counts = np.diff(ordered.begin)
    valid = np.flatnonzero(counts)
    ahead = np.arange(len(closer)) - np.repeat(ordered.begin[:-1], counts)
    begin = np.concatenate([[0], np.cumsum(counts[valid])])
    return Ranking(valid, closer + ahead + 1, begin, int(asked.sum()), int((asked & ~identities).sum()))


def _check_shapes(query: torch.Tensor, gallery: torch.Tensor, queries: int, items: int) -> None:
    for name, features, expected in (("query", query, queries), ("gallery", gallery, items)):
        if features.ndim != 2 or len(features) != expected or not features.is_floating_point():
            raise ValueError(
                f"{name} features are {features.dtype} of shape {tuple(features.shape)}, expected floats of shape "
                f"({expected}, D), a row for each image"
            )
    if query.shape[1] != gallery.shape[1]:
        raise ValueError(f"query features have {query.shape[1]} columns, gallery features {gallery.shape[1]}")


def _check_finite(
    exact: ExactDistances, query: LabelledImages, gallery: LabelledImages, rows: np.ndarray, *, shared: bool
) -> None:
    bad_queries = np.flatnonzero(~np.isfinite(exact.query_norms)).tolist()
    bad_items = rows[~np.isfinite(exact.gallery_norms)].tolist()
    if shared:
        # Together, so that every process stops and none waits for ever.
        bad_items = sorted(row for part in comm.all_gather_object(bad_items) for row in part)
    if not bad_queries and not bad_items:
        return
    first = query.paths[bad_queries[0]] if bad_queries else gallery.paths[min(bad_items)]
    raise ValueError(
        f"features of {len(bad_queries)} of {len(query.paths)} queries and {len(bad_items)} of {len(gallery.paths)} "
        f"gallery images are not finite, the first is that of {first!r}: the weights or the images hold NaN or infinity"
    )


def _local_pairs(pairs: Pairs, rows: np.ndarray, size: int) -> Pairs:
    """The pairs whose gallery item is among this process's ``rows``, with the position in ``rows`` as column."""
    position = np.full(size, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    columns = position[pairs.columns]
    here = columns >= 0
    return Pairs(pairs.rows[here], columns[here])


def _merge(matches: Pairs, distances: np.ndarray, out: Pairs) -> tuple[Pairs, np.ndarray]:
    """Both kinds of pairs in ascending order of query; distances are NaN where unknown."""
    rows = np.concatenate([matches.rows, out.rows])
    order = np.argsort(rows, kind="stable")
    known = np.concatenate([distances, np.full(len(out.rows), np.nan)])
    return Pairs(rows[order], np.concatenate([matches.columns, out.columns])[order]), known[order]


def _gathered(values: np.ndarray) -> np.ndarray:
    return comm.all_gather_rows(torch.from_numpy(np.ascontiguousarray(values))).numpy()
