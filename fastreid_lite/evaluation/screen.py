"""Float32 keys that order a gallery as the distance does, with a bound on how wrong each may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from fastreid_lite.evaluation.distance import ExactDistances, not_zero

_UNIT = 2.0**-24  # rounding unit of float32

#: The bound is at least this many times the largest error seen at a pair whose exact distance is known.
_SAFETY = 8.0

#: Rows that are widened to float64 at a time.
_CHUNK_ROWS = 64


@dataclass
class Screen:
    """``key = offset_g - scale * q.g`` in float32: ``factor * distance + shift_q``, up to its error.

    All features are taken less the centre of the gallery: those of an untrained network point all but one way, and the
    error of a product grows with all of a feature, the difference between items only with what is beside the centre.

    Attributes:
        query: (Q, D) float32, centred; for the cosine of unit length before.
        gallery: (G, D) float32, the same.
        offset: (G,) float32.
        scale: of the product.
        factor: of the distance.
        shift: (Q,) float64.
        unit: (Q,) float64, the rounding unit of a query's keys: their error is a small multiple of it.
        seen: the largest error met so far, in units.
    """

    query: torch.Tensor
    gallery: torch.Tensor
    offset: torch.Tensor
    scale: float
    factor: float
    shift: np.ndarray
    unit: np.ndarray
    seen: float = 0.0

    def keys(self, rows: slice, columns: slice, out: torch.Tensor) -> torch.Tensor:
        """The keys of a tile, written to ``out`` (rows, columns)."""
        torch.mm(self.query[rows], self.gallery[columns].T, out=out)
        # Not by addmm: a product that starts from the offset rounds to the offset's size at every step.
        return torch.sub(self.offset[columns], out, alpha=self.scale, out=out)

    def exact_keys(self, distances: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What the keys of (n,) exact distances at (n,) query rows would be without an error, float64."""
        return np.asarray(self.factor * distances + self.shift[rows])

    def learn(self, errors: np.ndarray, rows: np.ndarray) -> None:
        """Take note of (n,) absolute errors of keys at (n,) query rows: the bound never falls below what was seen."""
        if len(errors):
            self.seen = max(self.seen, float(np.max(errors / self.unit[rows])))

    def bound(self, rows: np.ndarray) -> np.ndarray:
        """(n,) float64 for (n,) query rows: how far a key may be from its exact value.

        A sum of D products is wrong by at most D units in theory, in practice by less than 1 for centred features and
        by a few where single coordinates dominate, since a product runs in short sums and roundings cancel (Higham and
        Mary 2019). A wide bound costs time at every match, so the margin over practice is modest, and the errors seen
        at known pairs keep watch over it: a product in reduced precision widens the bound by itself.
        """
        depth = self.query.shape[1]
        units = 14.0 + min(depth, math.sqrt(depth) / 4.0)
        return np.asarray(self.unit[rows] * max(units, _SAFETY * self.seen))


class _Centred(NamedTuple):
    features: torch.Tensor  # (N, D) float32
    squares: np.ndarray  # (N,) float64, squared lengths
    products: np.ndarray  # (N,) float64, with the centre, before it is taken off


def build_screen(exact: ExactDistances) -> Screen:
    """The screen of the features in ``exact``; holds a float32 copy of them."""
    if exact.metric == "cosine":
        factor = 1.0
        query_factors, gallery_factors = 1.0 / not_zero(exact.query_norms), 1.0 / not_zero(exact.gallery_norms)
    else:
        # A power of two, so that squares neither overflow nor vanish in float32.
        largest = max(exact.gallery_norms.max(initial=0.0), exact.query_norms.max(initial=0.0))
        power = 2.0 ** -math.frexp(largest)[1]
        factor = power**2
        query_factors, gallery_factors = np.full(len(exact.query), power), np.full(len(exact.gallery), power)
    centre = _centre(exact.gallery, gallery_factors)
    query = _take_off(exact.query, query_factors, centre)
    gallery = _take_off(exact.gallery, gallery_factors, centre)
    if exact.metric == "cosine":
        scale, offset = 1.0, -gallery.products
        shift = query.products - float(centre @ centre) - 1.0
    else:
        scale, offset = 2.0, gallery.squares
        shift = -query.squares
    # Keys are small where items differ little, so that their rounding is small as well.
    middle = float(offset.mean()) if len(offset) else 0.0
    offset = offset - middle
    longest = math.sqrt(gallery.squares.max(initial=0.0))
    unit = _UNIT * (scale * np.sqrt(query.squares) * longest + 0.25 * np.abs(offset).max(initial=0.0))
    # Features that are all one have no rounding error of keys, but that of float64 remains, and a division by the unit.
    unit = np.maximum(unit, 1e-18)
    offsets = torch.from_numpy(offset).float()
    return Screen(query.features, gallery.features, offsets, scale, factor, shift - middle, unit)


def _centre(features: np.ndarray, factors: np.ndarray) -> torch.Tensor:
    """(D,) float64, the mean of the rows times their factors."""
    total = torch.zeros(features.shape[1], dtype=torch.float64)
    for start in range(0, len(features), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        total += torch.mv(torch.from_numpy(features[rows]).double().T, torch.from_numpy(factors[rows]))
    return total / max(1, len(features))


def _take_off(features: np.ndarray, factors: np.ndarray, centre: torch.Tensor) -> _Centred:
    centred = torch.empty(features.shape, dtype=torch.float32)
    squares, products = (torch.empty(len(features), dtype=torch.float64) for _ in range(2))
    for start in range(0, len(features), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        part = torch.from_numpy(features[rows]).double() * torch.from_numpy(factors[rows])[:, None]
        products[rows] = torch.mv(part, centre)
        part.sub_(centre)
        squares[rows] = torch.linalg.vector_norm(part, dim=1).square_()
        centred[rows] = part
    return _Centred(centred, squares.numpy(), products.numpy())
