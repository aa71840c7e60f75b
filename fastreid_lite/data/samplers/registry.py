"""Where the name in DATALOADER.SAMPLER_TRAIN is looked up."""

from __future__ import annotations

from fastreid_lite.utils.registry import Registry

SAMPLER_REGISTRY = Registry("sampler", "DATALOADER.SAMPLER_TRAIN")
"""Classes called as ``cls(pids, camids, batch_size=, num_instances=, seed=, world_size=)``; see EpochSampler."""
