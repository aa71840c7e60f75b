"""Cosine margin over the pairs of a batch."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from fastreid_lite.modeling.losses.terms import check_factor, log_sum_exp_where, pair_masks, take_output
from fastreid_lite.modeling.precision import autocast_off, widened
from fastreid_lite.modeling.registries import LOSS_REGISTRY


def cosface(features: Tensor, targets: Tensor, *, margin: float = 0.25, gamma: float = 128.0) -> Tensor:
    """The margin of Wang et al., CosFace, CVPR 2018, put between pairs as in Sun et al., Circle loss, CVPR 2020, eq. 1.

    With the cosines s of pairs: ``softplus(logsumexp(-gamma s, positives) + logsumexp(gamma (s + m), negatives))``.

    Args:
        features: (B, D), of any length.
        targets: (B,) int64, any numbers.
        margin: m.
        gamma: factor of the cosines.

    Returns:
        A scalar of float32 or float64, the mean over the batch; an image without a positive or without a negative pair
        adds 0.
    """
    with autocast_off(features):
        unit = F.normalize(widened(features))
        cosines = unit @ unit.T
        positives, negatives = pair_masks(targets)
        far = log_sum_exp_where(-gamma * cosines, positives)
        near = log_sum_exp_where(gamma * (cosines + margin), negatives)
        return F.softplus(far + near).mean()


@LOSS_REGISTRY.register()
class Cosface:
    """:func:`cosface` of the head's features, as ``loss_cosface``.

    Args:
        margin: m, 0 or more.
        gamma: factor of the cosines, 0 or more.
        scale: factor of the loss, 0 or more.

    Raises:
        ValueError: one of the three is negative or not finite.
    """

    def __init__(self, *, margin: float = 0.25, gamma: float = 128.0, scale: float = 1.0) -> None:
        self.margin = check_factor(margin, "MODEL.LOSSES.COSFACE.MARGIN")
        self.gamma = check_factor(gamma, "MODEL.LOSSES.COSFACE.GAMMA")
        self.scale = check_factor(scale, "MODEL.LOSSES.COSFACE.SCALE")

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from MODEL.LOSSES.COSFACE."""
        settings = cfg.MODEL.LOSSES.COSFACE
        return {"margin": settings.MARGIN, "gamma": settings.GAMMA, "scale": settings.SCALE}

    def __call__(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
        features = take_output(outputs, "features", "Cosface")
        return {"loss_cosface": self.scale * cosface(features, targets, margin=self.margin, gamma=self.gamma)}
