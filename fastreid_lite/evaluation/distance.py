"""Distances between queries and gallery, as float32 blocks and as exact float64 values of single pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

#: Float64 numbers in a chunk of pairs: small enough to stay in the cache of one core.
_CHUNK_NUMBERS = 1 << 18


def cosine_distance(query: torch.Tensor, gallery: torch.Tensor) -> torch.Tensor:
    """``1 - cos``: (Q, D) and (G, D) to (Q, G), same dtype, in [0, 2].

    Lengths of the vectors do not matter; a zero vector is at distance 1 from everything.

    >>> cosine_distance(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
    tensor([[0., 1.]])
    """
    return torch.mm(_unit_rows(query), _unit_rows(gallery).T).neg_().add_(1.0).clamp_(min=0.0)


def euclidean_distance(query: torch.Tensor, gallery: torch.Tensor) -> torch.Tensor:
    """The *squared* euclidean distance, as in fast-reid: (Q, D) and (G, D) to (Q, G), same dtype, never below 0.

    The order is that of the distance itself, so ranks are the same; the values are not.

    >>> euclidean_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[25.]])
    """
    squares = query.square().sum(1, keepdim=True) + gallery.square().sum(1)
    return torch.addmm(squares, query, gallery.T, alpha=-2.0).clamp_(min=0.0)


METRICS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "cosine": cosine_distance,
    "euclidean": euclidean_distance,
}


def check_metric(metric: str) -> str:
    """``metric`` itself, where it is one of :data:`METRICS`.

    Raises:
        ValueError: it is not; the message lists what is known.
    """
    if metric not in METRICS:
        raise ValueError(f"metric (TEST.METRIC) is {metric!r}, expected one of {', '.join(map(repr, METRICS))}")
    return metric


def compute_distance(query: torch.Tensor, gallery: torch.Tensor, metric: str = "cosine") -> torch.Tensor:
    """The (Q, G) block of distances of (Q, D) and (G, D) features by the name of the metric.

    Raises:
        ValueError: ``metric`` is not known.
    """
    return METRICS[check_metric(metric)](query, gallery)


class ExactDistances:
    """Float64 distances of pairs of given features: cosine ``1 - x.y / (|x| |y|)``, euclidean ``sum (x - y)^2``.

    Sums run in an order that depends on D alone, so equal rows have equal distances whatever is asked beside them: ties
    stay ties.

    Args:
        query: (Q, D) on the CPU.
        gallery: (G, D) on the CPU.
        metric: a name in :data:`METRICS`.
    """

    def __init__(self, query: torch.Tensor, gallery: torch.Tensor, metric: str = "cosine") -> None:
        self.metric = check_metric(metric)
        self.query = _numbers(query)
        self.gallery = _numbers(gallery)
        self.query_norms = row_norms(self.query)
        self.gallery_norms = row_norms(self.gallery)
        rows = max(1, _CHUNK_NUMBERS // max(1, self.query.shape[1]))
        self._left = np.empty((rows, self.query.shape[1]), dtype=self.query.dtype)
        self._right = np.empty((rows, self.query.shape[1]), dtype=self.gallery.dtype)
        self._terms = np.empty((rows, self.query.shape[1]), dtype=np.float64)

    def __call__(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(n,) query rows and (n,) gallery rows to (n,) float64 distances."""
        distances = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), len(self._terms)):
            stop = min(start + len(self._terms), len(rows))
            distances[start:stop] = self._sums(rows[start:stop], columns[start:stop])
        if self.metric == "cosine":
            distances /= not_zero(self.query_norms)[rows]
            distances /= not_zero(self.gallery_norms)[columns]
            np.subtract(1.0, distances, out=distances)
        return distances

    def _sums(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        count = len(rows)
        # mode="clip" only keeps numpy from copying the output once more; all indices are in range.
        left = np.take(self.query, rows, axis=0, out=self._left[:count], mode="clip")
        right = np.take(self.gallery, columns, axis=0, out=self._right[:count], mode="clip")
        terms = self._terms[:count]
        if self.metric == "cosine":
            np.multiply(left, right, out=terms, dtype=np.float64)
        else:
            np.subtract(left, right, out=terms, dtype=np.float64)
            np.multiply(terms, terms, out=terms)
        return np.asarray(np.add.reduce(terms, axis=1))


def row_norms(features: np.ndarray) -> np.ndarray:
    """Euclidean length of each row, (N, D) to (N,) float64; not finite exactly where a row is not."""
    norms = np.empty(len(features), dtype=np.float64)
    rows = max(1, _CHUNK_NUMBERS // max(1, features.shape[1]))
    terms = np.empty((rows, features.shape[1]), dtype=np.float64)
    for start in range(0, len(features), rows):
        part = features[start : start + rows]
        square = np.multiply(part, part, out=terms[: len(part)], dtype=np.float64)
        norms[start : start + rows] = np.sqrt(np.add.reduce(square, axis=1))
    return norms


def not_zero(norms: np.ndarray) -> np.ndarray:
    """``norms`` with 1 for 0, to divide by."""
    return np.where(norms == 0.0, 1.0, norms)


def _unit_rows(features: torch.Tensor) -> torch.Tensor:
    """Rows of length 1; zero rows stay. Largest first: the square of a very small or large number has no float32."""
    largest = features.abs().amax(dim=1, keepdim=True)
    return F.normalize(features / largest.masked_fill(largest == 0, 1.0), dim=1)


def _numbers(features: torch.Tensor) -> np.ndarray:
    """As numpy, without loss: 16-bit floats, which numpy has in part only, become float32."""
    features = features.detach().cpu()
    if features.dtype not in (torch.float32, torch.float64):
        features = features.float()
    return features.contiguous().numpy()
