"""Cross entropy over identities, with label smoothing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fastreid_lite.modeling.losses.terms import check_factor, take_output
from fastreid_lite.modeling.precision import autocast_off, widened
from fastreid_lite.modeling.registries import LOSS_REGISTRY


def cross_entropy(logits: Tensor, targets: Tensor, *, eps: float = 0.0, alpha: float = 0.2) -> Tensor:
    """Cross entropy against a target of 1 - eps at the true class and eps / (C - 1) at each other.

    Szegedy et al., Rethinking the inception architecture, CVPR 2016, section 7, but with the whole of ``eps`` on the
    other classes: ``torch``'s label smoothing of e is ``eps = e (C - 1) / C`` here.

    >>> logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5]])
    >>> round(cross_entropy(logits, torch.tensor([0]), eps=0.1).item(), 4)
    0.7619

    Args:
        logits: (B, C), any real numbers.
        targets: (B,) int64 in 0..C-1.
        eps: in [0, 1); below 0 it adapts to each row as ``alpha`` times the probability of the true class, without
            gradient.
        alpha: in [0, 1]; used where ``eps`` is below 0.

    Returns:
        A scalar of float32 or float64: the sum over rows, divided by the number of rows whose loss is not exactly 0.
    """
    with autocast_off(logits):
        log_probabilities = torch.log_softmax(widened(logits), dim=1)
        at_true = log_probabilities.gather(1, targets.unsqueeze(1)).squeeze(1)
        smoothing: float | Tensor = eps if eps >= 0 else alpha * at_true.detach().exp()
        if eps == 0:
            rows = -at_true
        else:
            # One class has no others, and its loss is 0 whatever the share.
            others = max(logits.shape[1] - 1, 1)
            at_others = log_probabilities.sum(dim=1) - at_true
            rows = -(1.0 - smoothing) * at_true - smoothing / others * at_others
        return rows.sum() / (rows != 0).sum().clamp(min=1)


@LOSS_REGISTRY.register()
class CrossEntropyLoss:
    """:func:`cross_entropy` of the head's scores, as ``loss_cls``.

    Args:
        eps: label smoothing in [0, 1), or below 0 for adaptive smoothing.
        alpha: strength of the adaptive smoothing, in [0, 1].
        scale: factor of the loss, 0 or more.

    Raises:
        ValueError: one of the three is out of range.
    """

    def __init__(self, *, eps: float = 0.0, alpha: float = 0.2, scale: float = 1.0) -> None:
        if not eps < 1:
            raise ValueError(
                f"MODEL.LOSSES.CE.EPSILON must be below 1 (below 0: adaptive smoothing), got {eps}; 0.1 is usual"
            )
        if not 0 <= alpha <= 1:
            raise ValueError(f"MODEL.LOSSES.CE.ALPHA must be from 0 to 1, got {alpha}")
        self.eps = eps
        self.alpha = alpha
        self.scale = check_factor(scale, "MODEL.LOSSES.CE.SCALE")

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from MODEL.LOSSES.CE."""
        settings = cfg.MODEL.LOSSES.CE
        return {"eps": settings.EPSILON, "alpha": settings.ALPHA, "scale": settings.SCALE}

    def __call__(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
        logits = take_output(outputs, "cls_outputs", "CrossEntropyLoss")
        return {"loss_cls": self.scale * cross_entropy(logits, targets, eps=self.eps, alpha=self.alpha)}
