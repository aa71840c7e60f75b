"""A project outside the package for tests: a backbone so small that a step takes a millisecond."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from fastreid_lite.modeling import BACKBONE_REGISTRY


class TinyBackbone(nn.Module):
    """One convolution, one norm."""

    feat_dim = 8

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.conv(images)))


@BACKBONE_REGISTRY.register()
def build_tiny_backbone(cfg: Any) -> nn.Module:
    """The backbone of the tests. SLOW_STEPS in the environment makes each step take so many seconds."""
    backbone = TinyBackbone()
    seconds = float(os.environ.get("SLOW_STEPS", "0"))
    if seconds:
        import time

        backbone.register_forward_hook(lambda *_: time.sleep(seconds))
    return backbone
