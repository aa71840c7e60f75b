"""How many gallery items stand before each true match, without ever holding the distances or sorting the gallery.

A rank is a count of closer items. A tile of float32 keys is sorted by value alone, the few matches are looked up in it,
and only items too near to a match for float32 to tell are taken up again in float64.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from fastreid_lite.evaluation.distance import ExactDistances
from fastreid_lite.evaluation.protocol import Pairs
from fastreid_lite.evaluation.screen import Screen, build_screen

#: A tile of keys: large enough for the product to run at full speed, 16 MiB.
_TILE_ROWS = 1024
_TILE_COLUMNS = 4096

#: Queries of a tile whose nearest item is computed exactly as well, to see how wrong float32 is.
_PROBES = 64

#: Ambiguous items that are held at a time, 24 bytes each.
_MOST_AMBIGUOUS = 1 << 20


class Matches(NamedTuple):
    """M true matches in ascending order of query and, within one, of distance.

    Attributes:
        rows: (M,) int64, query of each.
        distances: (M,) float64, exact.
        begin: (Q + 1,) int64, where each query's matches begin.
    """

    rows: np.ndarray
    distances: np.ndarray
    begin: np.ndarray

    @staticmethod
    def ordered(rows: np.ndarray, distances: np.ndarray, queries: int) -> Matches:
        """From matches in any order."""
        order = np.lexsort((distances, rows))
        rows, distances = rows[order], distances[order]
        return Matches(rows, distances, np.searchsorted(rows, np.arange(queries + 1)))


def count_closer(exact: ExactDistances, matches: Matches, known: Pairs, known_distances: np.ndarray) -> np.ndarray:
    """For each match, the number of other gallery items at its distance or closer.

    Args:
        exact: the features of all queries and of this gallery.
        matches: those of all queries, wherever in the gallery they lie.
        known: the pairs that are not counted: matches themselves and what the protocol takes out. Ascending.
        known_distances: (n,) float64, the exact distances of ``known``; NaN where they were not computed.

    Returns:
        (M,) int64. Items at exactly the distance of a match count as before it.
    """
    counter = _Counter(exact, matches, known, known_distances)
    ranked = np.flatnonzero(np.diff(matches.begin))
    if len(ranked) == 0 or len(exact.gallery) == 0:
        return counter.closer
    tile = torch.empty((min(_TILE_ROWS, len(exact.query)), min(_TILE_COLUMNS, len(exact.gallery))))
    with ThreadPoolExecutor(max_workers=torch.get_num_threads()) as pool:
        for top in range(0, len(exact.query), _TILE_ROWS):
            rows = slice(top, min(top + _TILE_ROWS, len(exact.query)))
            for left in range(0, len(exact.gallery), _TILE_COLUMNS):
                columns = slice(left, min(left + _TILE_COLUMNS, len(exact.gallery)))
                counter.add_tile(rows, columns, tile, pool)
    return counter.closer


class _Windows(NamedTuple):
    """The m matches of a tile's queries, and for each the keys that float32 cannot tell from its own.

    Attributes:
        first: number of the first match.
        left: first gallery column of the tile.
        lines: (m,) row in the tile.
        low, high: (m,) float32, the window: keys below are closer than the match, above farther.
        below, through: (m,) items of the tile below the window, and below or in it.
    """

    first: int
    left: int
    lines: np.ndarray
    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    through: np.ndarray


class _Counter:
    """The counts so far, and what a tile needs to add to them."""

    def __init__(self, exact: ExactDistances, matches: Matches, known: Pairs, known_distances: np.ndarray) -> None:
        self.exact = exact
        self.matches = matches
        self.known = known
        self.known_distances = known_distances
        self.screen: Screen = build_screen(exact)
        self.targets = self.screen.exact_keys(matches.distances, matches.rows)
        self.closer = np.zeros(len(matches.rows), dtype=np.int64)

    def add_tile(self, rows: slice, columns: slice, buffer: torch.Tensor, pool: ThreadPoolExecutor) -> None:
        """Count the items of a tile."""
        height, width = rows.stop - rows.start, columns.stop - columns.start
        out = buffer.view(-1)[: height * width].view(height, width)
        keys = self.screen.keys(rows, columns, out).numpy()
        self._take_out_known(rows, columns, keys)
        first, last = int(self.matches.begin[rows.start]), int(self.matches.begin[rows.stop])
        if first == last:
            return
        self._probe(rows, columns, keys)
        lines = self.matches.rows[first:last]
        bound = self.screen.bound(lines)
        low = np.nextafter((self.targets[first:last] - bound).astype(np.float32), np.float32(-np.inf))
        high = np.nextafter((self.targets[first:last] + bound).astype(np.float32), np.float32(np.inf))
        ordered = _sort_rows(keys, pool)
        # A match's place in the padded table: its query, and its number among that query's matches.
        places = np.arange(first, last) - self.matches.begin[lines]
        lines = lines - rows.start
        below = _look_up(ordered, lines, places, low, right=False)
        through = _look_up(ordered, lines, places, high, right=True)
        self.closer[first:last] += below
        window = _Windows(first, columns.start, lines, low, high, below, through)
        self._settle(window, keys, ordered)

    def _take_out_known(self, rows: slice, columns: slice, keys: np.ndarray) -> None:
        """Learn from the keys of pairs whose distance is known, and move them behind everything."""
        start, stop = np.searchsorted(self.known.rows, [rows.start, rows.stop])
        lines, places = self.known.rows[start:stop], self.known.columns[start:stop]
        here = (places >= columns.start) & (places < columns.stop)
        lines, places = lines[here], places[here] - columns.start
        distances = self.known_distances[start:stop][here]
        errors = np.abs(keys[lines - rows.start, places] - self.screen.exact_keys(distances, lines))
        learnt = ~np.isnan(distances)
        self.screen.learn(errors[learnt], lines[learnt])
        keys[lines - rows.start, places] = np.inf

    def _probe(self, rows: slice, columns: slice, keys: np.ndarray) -> None:
        """Learn from items near to a query, where the terms of the product are largest: matches may be few or far."""
        lines = np.arange(0, len(keys), -(-len(keys) // _PROBES))
        places = keys[lines].argmin(axis=1)
        values = keys[lines, places].astype(np.float64)
        lines, places, values = (part[np.isfinite(values)] for part in (lines, places, values))
        distances = self.exact(lines + rows.start, places + columns.start)
        errors = np.abs(values - self.screen.exact_keys(distances, lines + rows.start))
        self.screen.learn(errors, lines + rows.start)

    def _settle(self, window: _Windows, keys: np.ndarray, ordered: np.ndarray) -> None:
        """Count by exact distance within the windows that are not empty."""
        found: list[np.ndarray] = []
        owners: list[int] = []
        held = 0
        for number in np.flatnonzero(window.through > window.below).tolist():
            line, position = window.lines[number], window.below[number]
            values = keys[line]
            if window.through[number] - position == 1:
                places = (values == ordered[line, position]).argmax()[None]
            else:
                places = np.flatnonzero((values >= window.low[number]) & (values <= window.high[number]))
            found.append(places)
            owners.append(number)
            held += len(places)
            if held >= _MOST_AMBIGUOUS:
                self._count_exactly(window, found, owners)
                found, owners, held = [], [], 0
        if owners:
            self._count_exactly(window, found, owners)

    def _count_exactly(self, window: _Windows, found: list[np.ndarray], owners: list[int]) -> None:
        columns = np.concatenate(found) + window.left
        numbers = np.repeat(np.array(owners), [len(places) for places in found]) + window.first
        rows = self.matches.rows[numbers]
        # Windows of one query overlap where its matches are alike; each pair is computed once.
        size = len(self.exact.gallery)
        pairs, which = np.unique(rows * size + columns, return_inverse=True)
        distances = self.exact(pairs // size, pairs % size)[which]
        closer = distances <= self.matches.distances[numbers]
        self.closer += np.bincount(numbers[closer], minlength=len(self.closer))


def _sort_rows(keys: np.ndarray, pool: ThreadPoolExecutor) -> np.ndarray:
    """A copy of (n, m) ``keys`` with each row in ascending order; numpy sorts outside the interpreter's lock."""
    ordered = keys.copy()
    step = -(-len(keys) // torch.get_num_threads())
    list(pool.map(lambda top: ordered[top : top + step].sort(axis=1), range(0, len(keys), step)))
    return ordered


def _look_up(
    ordered: np.ndarray, lines: np.ndarray, places: np.ndarray, values: np.ndarray, *, right: bool
) -> np.ndarray:
    """Position of (n,) ``values`` in the sorted rows (n,) ``lines``."""
    table = np.full((len(ordered), int(places.max()) + 1), np.inf, dtype=np.float32)
    table[lines, places] = values
    found = torch.searchsorted(torch.from_numpy(ordered), torch.from_numpy(table), right=right)
    return found.numpy()[lines, places]
