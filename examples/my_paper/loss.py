"""A loss with a parameter of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fastreid_lite.modeling import LOSS_REGISTRY


@LOSS_REGISTRY.register()
class RingLoss(nn.Module):
    """Pulls the lengths of features to one radius, which is learnt (Zheng et al., Ring loss, CVPR 2018, equation 2).

    Args:
        weight: factor of the loss, >= 0.
        radius: the radius to begin with, > 0.
    """

    def __init__(self, *, weight: float = 0.01, radius: float = 1.0) -> None:
        super().__init__()
        if not (weight >= 0 and radius > 0):
            raise ValueError(f"PAPER.RING has WEIGHT {weight} and RADIUS {radius}, expected >= 0 and > 0")
        self.weight = weight
        self.radius = nn.Parameter(torch.tensor(radius))

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from PAPER.RING."""
        return {"weight": cfg.PAPER.RING.WEIGHT, "radius": cfg.PAPER.RING.RADIUS}

    def forward(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
        """``weight / 2`` times the mean of (length - radius) squared over the features (B, D)."""
        lengths = outputs["features"].float().norm(dim=1)
        return {"loss_ring": self.weight / 2 * (lengths - self.radius).square().mean()}
