"""From DATALOADER.SAMPLER_TRAIN to a sampler."""

from __future__ import annotations

from typing import Any

from fastreid_lite.data.samplers.balanced import BalancedIdentitySampler
from fastreid_lite.data.samplers.base import EpochSampler
from fastreid_lite.data.samplers.naive import NaiveIdentitySampler
from fastreid_lite.data.samplers.training import TrainingSampler
from fastreid_lite.data.samples import Samples
from fastreid_lite.utils.registry import Registry

SAMPLER_REGISTRY = Registry("sampler", "DATALOADER.SAMPLER_TRAIN")
"""Classes called as ``cls(pids, camids, batch_size=, num_instances=, seed=, world_size=)``; see EpochSampler."""

for _sampler in (TrainingSampler, NaiveIdentitySampler, BalancedIdentitySampler):
    SAMPLER_REGISTRY.register(_sampler)


def build_sampler(cfg: Any, samples: Samples, *, seed: int, world_size: int = 1) -> EpochSampler:
    """The sampler that DATALOADER.SAMPLER_TRAIN names, over ``samples``.

    Raises:
        KeyError: no such sampler.
        ValueError: the sampler cannot do what NUM_INSTANCE, IMS_PER_BATCH and ``world_size`` ask of it.
    """
    sampler: EpochSampler = SAMPLER_REGISTRY.get(cfg.DATALOADER.SAMPLER_TRAIN)(
        samples.pids,
        samples.camids,
        batch_size=cfg.SOLVER.IMS_PER_BATCH,
        num_instances=cfg.DATALOADER.NUM_INSTANCE,
        seed=seed,
        world_size=world_size,
    )
    return sampler
