"""Who is drawn how often in an epoch, and in which batch, so that nobody stands twice in one.

Both are done for a whole epoch at once, in numpy: a million images of a hundred thousand identities in under a second.
"""

from __future__ import annotations

import numpy as np

_SWEEPS_PER_PLACE = 3  # each draw is exchanged about this often; after 3, under 5 % keep their first neighbours
_MOST_SWEEPS = 96  # a sweep costs in proportion to the batch; in large batches neighbours are many anyway


class Allotment:
    """How many draws each identity gets in each epoch: even shares, by arithmetic, without a memory.

    Every identity has ``weights`` marks, evenly spaced around a circle at a random phase. Each epoch takes the next arc
    of marks, as many as the epoch has draws. So any run of epochs covers one long arc, in which two identities with
    equally many marks differ by at most one.

    Args:
        weights: (I,) int64 >= 1, marks of each identity.
        seed: places the phases; the same in all epochs.
    """

    def __init__(self, weights: np.ndarray, seed: int) -> None:
        self.weights = weights
        owners = np.repeat(np.arange(len(weights)), weights)
        number = np.arange(len(owners)) - np.repeat(np.cumsum(weights) - weights, weights)
        phases = np.random.default_rng([seed, 0xA110]).random(len(weights))
        self._circle = owners[np.argsort((number + phases[owners]) / weights[owners], kind="stable")]

    def draws(self, epoch: int, num_batches: int, per_batch: int, rng: np.random.Generator) -> np.ndarray:
        """(I,) int64, how often each identity is drawn in ``epoch``: ``num_batches * per_batch`` in all, nobody more
        than ``num_batches`` times. ``rng`` chooses who takes the places of identities that would come more often."""
        total, marks = num_batches * per_batch, len(self._circle)
        rounds, rest = divmod(total, marks)
        arc = (epoch * total % marks + np.arange(rest)) % marks
        draws = rounds * self.weights + np.bincount(self._circle[arc], minlength=len(self.weights))
        missing = int(np.maximum(draws - num_batches, 0).sum())
        draws = np.minimum(draws, num_batches)
        while missing:
            takers = rng.permutation(np.flatnonzero(draws < num_batches))[:missing]
            draws[takers] += 1
            missing -= len(takers)
        return draws


def place(draws: np.ndarray, num_batches: int, per_batch: int, rng: np.random.Generator) -> np.ndarray:
    """A random table of draws in which no identity stands twice in a row.

    Args:
        draws: (I,) how often each identity is drawn; at most ``num_batches``, ``num_batches * per_batch`` in all.
        num_batches, per_batch: the shape of the table.
        rng: of this epoch.

    Returns:
        (num_batches, per_batch) int64, each of 0..num_batches*per_batch-1 once: the number of a draw, where the draws
        of the first identity come first, then those of the second, and so on.
    """
    # Wrap-around rule (McNaughton 1959): identities in random order one after the other down the columns. An identity
    # fills at most num_batches neighbouring places, so its places lie in different rows.
    order = rng.permutation(np.flatnonzero(draws))
    counts = draws[order]
    within = np.arange(num_batches * per_batch) - np.repeat(np.cumsum(counts) - counts, counts)
    line = np.repeat((np.cumsum(draws) - draws)[order], counts) + within
    table = line.reshape(per_batch, num_batches).T[rng.permutation(num_batches)]
    _mix(table, np.repeat(np.arange(len(draws)), draws), rng)
    return rng.permuted(table, axis=1)


def _mix(table: np.ndarray, identity_of_draw: np.ndarray, rng: np.random.Generator) -> None:
    """Exchange draws between random pairs of rows, in place, wherever no row would get an identity twice.

    Without this, two identities with many draws would meet again and again.
    """
    num_batches, per_batch = table.shape
    half = num_batches // 2
    identities = identity_of_draw[table]
    for _ in range(min(_SWEEPS_PER_PLACE * per_batch, _MOST_SWEEPS)):
        rows = rng.permutation(num_batches)
        left, right = rows[:half], rows[half : 2 * half]
        left_column, right_column = rng.integers(per_batch, size=(2, half))
        from_left, from_right = identities[left, left_column], identities[right, right_column]
        free = ~(identities[left] == from_right[:, None]).any(1) & ~(identities[right] == from_left[:, None]).any(1)
        here = (left[free], left_column[free])
        there = (right[free], right_column[free])
        for cells in (table, identities):
            cells[here], cells[there] = cells[there], cells[here]
