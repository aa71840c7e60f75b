"""KD: distillation from one or more trained teachers."""

from __future__ import annotations

from ..node import CfgNode


def kd_defaults() -> CfgNode:
    node = CfgNode()
    # The teachers: a config file each, and in the same order a checkpoint each.
    node.MODEL_CONFIG = []
    node.MODEL_WEIGHTS = []
    node.EMA = CfgNode()
    # A moving average of the student as one more teacher; the share of the old average that stays at each step.
    node.EMA.ENABLED = False
    node.EMA.MOMENTUM = 0.999
    return node
