"""DATALOADER: which images make a batch, and who reads them."""

from __future__ import annotations

from ..node import CfgNode


def dataloader_defaults() -> CfgNode:
    node = CfgNode()
    # The sampler's name in its registry: "TrainingSampler" shuffles all images; "NaiveIdentitySampler" and
    # "BalancedIdentitySampler" fill a batch with NUM_INSTANCE images of each of several identities.
    node.SAMPLER_TRAIN = "TrainingSampler"
    # Images of each identity in a batch; has to divide the batch of one process.
    node.NUM_INSTANCE = 4
    # Identities of each camera or set in a batch, for the sampler that weighs them.
    node.SET_WEIGHT = []
    # Processes that read images for each training process; 0 reads in the training process. Changes no result.
    node.NUM_WORKERS = 8
    # Batches that each of them prepares ahead.
    node.PREFETCH_FACTOR = 2
    # An image that cannot be read: "error" stops with its path, "skip" puts the next image that can be read in its
    # place and counts.
    node.ON_BROKEN_IMAGE = "error"
    return node
