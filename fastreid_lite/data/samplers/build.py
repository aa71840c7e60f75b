"""From DATALOADER.SAMPLER_TRAIN to a sampler."""

from __future__ import annotations

from typing import Any

from fastreid_lite.data.samplers.balanced import BalancedIdentitySampler
from fastreid_lite.data.samplers.base import EpochSampler
from fastreid_lite.data.samplers.naive import NaiveIdentitySampler
from fastreid_lite.data.samplers.registry import SAMPLER_REGISTRY
from fastreid_lite.data.samplers.training import TrainingSampler
from fastreid_lite.data.samples import Samples

# Importing the samplers registers them.
__all__ = ["SAMPLER_REGISTRY", "BalancedIdentitySampler", "NaiveIdentitySampler", "TrainingSampler", "build_sampler"]


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
