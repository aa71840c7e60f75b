"""Every key there is, with its default: one file a section, each key explained above it.

fast-reid's keys have fast-reid's names and defaults (``MODEL.DEVICE`` is "auto" here); ours stand beside them. Closed
choices are listed once more in `schema.OPTIONS`, which refuses all others.
"""

from __future__ import annotations

from ..node import CfgNode
from .dataloader import dataloader_defaults
from .datasets import datasets_defaults
from .input import input_defaults
from .kd import kd_defaults
from .model import model_defaults
from .run import add_run_defaults
from .solver import solver_defaults
from .test import test_defaults


def get_cfg() -> CfgNode:
    """A new config with the defaults; changing it changes no other."""
    cfg = CfgNode()
    cfg.MODEL = model_defaults()
    cfg.KD = kd_defaults()
    cfg.INPUT = input_defaults()
    cfg.DATASETS = datasets_defaults()
    cfg.DATALOADER = dataloader_defaults()
    cfg.SOLVER = solver_defaults()
    cfg.TEST = test_defaults()
    add_run_defaults(cfg)
    return cfg
