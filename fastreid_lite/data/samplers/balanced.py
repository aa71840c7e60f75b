"""P x K batches in which every identity has its turn, seen by several cameras."""

from __future__ import annotations

import numpy as np

from fastreid_lite.data.samplers.identity import IdentitySampler
from fastreid_lite.data.samplers.registry import SAMPLER_REGISTRY


@SAMPLER_REGISTRY.register()
class BalancedIdentitySampler(IdentitySampler):
    """P different identities, each equally often; a random image of each and K-1 more from other cameras.

    Where an identity has images from other cameras than the first one's, the K-1 come from those alone, repeated
    (equally often to within one) only where there are fewer; else from its other images; else the one image repeats.
    Without cameras, from its other images.
    """

    def _grouped(self) -> np.ndarray:
        """By identity, then by camera, so that a camera of an identity is one block."""
        if self.camids is None:
            return super()._grouped()
        return np.lexsort((self.camids, self.pids))

    def weights(self) -> np.ndarray:
        return np.ones(len(self.count), dtype=np.int64)

    def draw_images(self, identities: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        first, count = self.first[identities], self.count[identities]
        anchor = first + rng.integers(count)
        left_out, width = self._left_out(identities, anchor)
        pool = count - width  # images of the identity outside of the left-out block
        alone = pool == 0
        chosen = _choose(np.maximum(pool, 1), self.num_instances - 1, rng)
        others = first[:, None] + chosen + np.where(first[:, None] + chosen >= left_out[:, None], width[:, None], 0)
        others[alone] = anchor[alone][:, None]
        return np.concatenate([anchor[:, None], others], axis=1)

    def _left_out(self, identities: np.ndarray, anchor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start and length, in ``order``, of the block not to choose from: the anchor's camera, or where the identity
        has no other, the anchor alone."""
        alone = anchor, np.ones_like(anchor)
        if self.camids is None:
            return alone
        cameras, pids = self.camids[self.order], self.pids[self.order]
        changes = np.flatnonzero((np.diff(cameras) != 0) | (np.diff(pids) != 0)) + 1
        starts = np.concatenate([[0], changes])
        lengths = np.diff(np.concatenate([starts, [len(pids)]]))
        block = np.searchsorted(starts, anchor, side="right") - 1
        single = lengths[block] == self.count[identities]
        return np.where(single, alone[0], starts[block]), np.where(single, alone[1], lengths[block])


def _choose(pool: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """For each row r, ``wanted`` numbers from 0..pool[r]-1, different where pool[r] >= wanted, else going round.

    Floyd's algorithm (Bentley and Floyd 1987, "A sample of brilliance"), all rows at once, then a random rotation,
    which makes every number equally likely in every column.

    Args:
        pool: (T,) int64 >= 1.

    Returns:
        (T, wanted) int64.
    """
    distinct = np.minimum(pool, wanted)
    chosen = np.full((len(pool), wanted), -1, dtype=np.int64)
    for column in range(wanted):
        top = pool - distinct + column
        drawn = rng.integers(np.maximum(top, 0) + 1)
        taken = (chosen[:, :column] == drawn[:, None]).any(1)
        chosen[:, column] = np.where(taken, top, drawn)
    columns = np.arange(wanted) % np.maximum(distinct, 1)[:, None]
    chosen = np.take_along_axis(chosen, columns, axis=1)
    return (chosen + rng.integers(pool)[:, None]) % pool[:, None]
