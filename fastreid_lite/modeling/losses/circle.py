"""Circle loss over the pairs of a batch."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from fastreid_lite.modeling.losses.terms import check_factor, log_sum_exp_where, pair_masks, take_output
from fastreid_lite.modeling.precision import autocast_off, widened
from fastreid_lite.modeling.registries import LOSS_REGISTRY


def circle(features: Tensor, targets: Tensor, *, margin: float = 0.25, gamma: float = 128.0) -> Tensor:
    """Sun et al., Circle loss, CVPR 2020, equations 4 to 8, each image in turn the anchor.

    With the cosines s of pairs, weights ``max(1 + m - s, 0)`` for positive and ``max(s + m, 0)`` for negative pairs (no
    gradient through them), optima ``1 - m`` and ``m``: ``softplus(logsumexp(positives) + logsumexp(negatives))``.

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
        weights_positive = (1.0 + margin - cosines.detach()).clamp(min=0.0)
        weights_negative = (cosines.detach() + margin).clamp(min=0.0)
        far = log_sum_exp_where(-gamma * weights_positive * (cosines - (1.0 - margin)), positives)
        near = log_sum_exp_where(gamma * weights_negative * (cosines - margin), negatives)
        return F.softplus(far + near).mean()


@LOSS_REGISTRY.register()
class CircleLoss:
    """:func:`circle` of the head's features, as ``loss_circle``.

    Args:
        margin: m, 0 or more.
        gamma: factor of the cosines, 0 or more.
        scale: factor of the loss, 0 or more.

    Raises:
        ValueError: one of the three is negative or not finite.
    """

    def __init__(self, *, margin: float = 0.25, gamma: float = 128.0, scale: float = 1.0) -> None:
        self.margin = check_factor(margin, "MODEL.LOSSES.CIRCLE.MARGIN")
        self.gamma = check_factor(gamma, "MODEL.LOSSES.CIRCLE.GAMMA")
        self.scale = check_factor(scale, "MODEL.LOSSES.CIRCLE.SCALE")

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from MODEL.LOSSES.CIRCLE."""
        settings = cfg.MODEL.LOSSES.CIRCLE
        return {"margin": settings.MARGIN, "gamma": settings.GAMMA, "scale": settings.SCALE}

    def __call__(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
        features = take_output(outputs, "features", "CircleLoss")
        return {"loss_circle": self.scale * circle(features, targets, margin=self.margin, gamma=self.gamma)}
