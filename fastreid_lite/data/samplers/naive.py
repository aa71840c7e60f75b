"""P x K batches in which every image has its turn."""

from __future__ import annotations

import numpy as np

from fastreid_lite.data.samplers.identity import IdentitySampler
from fastreid_lite.data.samplers.registry import SAMPLER_REGISTRY


@SAMPLER_REGISTRY.register()
class NaiveIdentitySampler(IdentitySampler):
    """P different identities with K images each, taken from an identity's images without replacement.

    The images of an identity are shuffled and cut into groups of K; when fewer than K are left, they are shuffled
    anew. An identity with fewer than K images repeats its own, each equally often to within one. Identities are drawn
    in proportion to their groups, max(1, images // K), so images are used about equally often, as in fast-reid.
    """

    def weights(self) -> np.ndarray:
        return np.maximum(self.count // self.num_instances, 1)

    def draw_images(self, identities: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        groups = self.weights()
        rounds = -(-draws // groups)  # shuffles that each identity needs, rounded up
        of_round = np.repeat(np.arange(len(draws)), rounds)
        sizes = self.count[of_round]
        starts = np.cumsum(sizes) - sizes
        # One sort shuffles every round of every identity: the whole part of the key keeps them apart.
        keys = np.repeat(np.arange(len(sizes), dtype=np.float64), sizes) + rng.random(int(sizes.sum()))
        shuffled = np.argsort(keys) + np.repeat(self.first[of_round] - starts, sizes)

        number = np.arange(len(identities)) - (np.cumsum(draws) - draws)[identities]
        first_round = np.cumsum(rounds) - rounds
        start = starts[first_round[identities] + number // groups[identities]]
        place = (number % groups[identities])[:, None] * self.num_instances + np.arange(self.num_instances)
        return shuffled[start[:, None] + place % self.count[identities][:, None]]
