"""Every image once an epoch."""

from __future__ import annotations

import numpy as np

from fastreid_lite.data.samplers.base import EpochSampler
from fastreid_lite.data.samplers.registry import SAMPLER_REGISTRY


@SAMPLER_REGISTRY.register()
class TrainingSampler(EpochSampler):
    """A new random order in each epoch; the images beyond the last full batch are left out, others each time."""

    def epoch_indices(self, epoch: int) -> np.ndarray:
        return self.generator(epoch).permutation(len(self.pids))[: self.batches_per_epoch * self.batch_size]
