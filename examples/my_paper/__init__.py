"""A project outside the library: its own keys, a loss, a dataset and a hook, without an edit in the library.

A config that says ``PROJECT: {IMPORTS: [my_paper]}`` imports this package before anything is merged. What the modules
below register can then be named in the config, and the keys that :func:`add_config` adds are keys like all others.
"""

from __future__ import annotations

from fastreid_lite.config import CfgNode

from .dataset import FewShotReID
from .loss import RingLoss

__all__ = ["FewShotReID", "RingLoss", "add_config"]


def add_config(cfg: CfgNode) -> None:
    """Add the keys of this project, each with its default."""
    cfg.PAPER = CfgNode()
    # The dataset of which FewShotReID takes a part, and how many images it keeps of each training identity.
    cfg.PAPER.BASE = "SyntheticReID"
    cfg.PAPER.SHOTS = 2
    # Weight of the ring loss, and the radius that it begins with.
    cfg.PAPER.RING = CfgNode({"WEIGHT": 0.01, "RADIUS": 1.0})
    # Steps in which the weight grows from 0 to its value (train.py only).
    cfg.PAPER.RAMP_ITERS = 20
