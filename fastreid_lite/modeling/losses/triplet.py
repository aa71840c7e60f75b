"""Triplet loss within a batch: an image nearer to its own identity than to any other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from fastreid_lite.modeling.losses.terms import check_factor, pair_masks, take_output
from fastreid_lite.modeling.precision import autocast_off, widened
from fastreid_lite.modeling.registries import LOSS_REGISTRY


def euclidean_distances(features: Tensor) -> Tensor:
    """Distances of all pairs of rows of (B, D), (B, B). A row is 1e-6 from itself and from its equals.

    The square is kept at 1e-12 or more, since the slope of the root at 0 is infinite.
    """
    squares = features.square().sum(dim=1)
    squared = squares.unsqueeze(1) + squares.unsqueeze(0) - 2.0 * features @ features.T
    itself = torch.eye(len(features), dtype=torch.bool, device=features.device)
    return squared.masked_fill(itself, 0.0).clamp(min=1e-12).sqrt()


def cosine_distances(features: Tensor) -> Tensor:
    """``2 - 2 cos`` of all pairs of rows of (B, D), (B, B), in [0, 4]: squared distances of unit vectors."""
    unit = F.normalize(features)
    return 2.0 - 2.0 * unit @ unit.T


def hardest(distances: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    """The farthest image of the anchor's identity and the nearest of another, each (B,).

    Hermans et al., In defense of the triplet loss, 2017, equation 5. Without another identity the second is infinite.
    """
    farthest = torch.where(same, distances, -torch.inf).amax(dim=1)
    nearest = torch.where(same, torch.inf, distances).amin(dim=1)
    return farthest, nearest


def weighted(distances: Tensor, same: Tensor, *, softening: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Means that lean to far images of the anchor's identity and to near ones of others, each (B,).

    Ye et al., Deep learning for person re-identification: a survey and outlook, PAMI 2021, equations 6 to 8.

    Args:
        distances: (B, B).
        same: (B, B) bool, the diagonal included.
        softening: added to both sums of weights. fast-reid's 1e-6, which its published numbers contain, counts where
            all others are far: the sum of their ``exp(-distance)`` is then below it, and the mean falls to 0. 0 is the
            plain formula, at any distance.
    """
    far = torch.where(same, distances, -torch.inf)
    far_weights = (far - far.amax(dim=1, keepdim=True)).exp()
    mean_far = (far_weights * distances).sum(dim=1) / (far_weights.sum(dim=1) + softening)

    near = torch.where(same, -torch.inf, -distances)
    # exp(-distance) by its largest, so that it does not vanish; the softening is scaled alike.
    largest = near.detach().amax(dim=1, keepdim=True).clamp(min=torch.finfo(distances.dtype).min)
    near_weights = (near - largest).exp()
    scaled = softening * (-largest.squeeze(1)).exp() if softening else 0.0
    total = near_weights.sum(dim=1) + scaled
    mean_near = (near_weights * distances).sum(dim=1) / torch.where(total > 0, total, 1.0)
    return mean_far, mean_near


def triplet(
    features: Tensor,
    targets: Tensor,
    *,
    margin: float = 0.3,
    norm_feat: bool = False,
    hard_mining: bool = True,
    softening: float = 1e-6,
) -> Tensor:
    """Mean over anchors of how far the triplet of each is from being in order.

    With a margin ``max(positive - negative + margin, 0)``, without one ``log(1 + exp(positive - negative))``, which is
    computed without overflow. The anchor counts among the images of its identity, so one that is alone is only pushed
    away from others; a batch in which no image has both another of its identity and one of another gives 0, with a
    gradient of 0. Within one process: images of other processes are not seen.

    >>> features = torch.tensor([[0.0], [1.0], [1.5], [9.0]])
    >>> round(triplet(features, torch.tensor([0, 0, 1, 1]), margin=0.3).item(), 3)
    2.025

    Args:
        features: (B, D).
        targets: (B,) int64, any numbers.
        margin: in units of the distance; 0 for the soft margin.
        norm_feat: ``2 - 2 cos`` in place of the Euclidean distance.
        hard_mining: :func:`hardest` pairs; else :func:`weighted` ones.
        softening: see :func:`weighted`.

    Returns:
        A scalar of float32 or float64.
    """
    with autocast_off(features):
        features = widened(features)
        positives, negatives = pair_masks(targets)
        distances = cosine_distances(features) if norm_feat else euclidean_distances(features)
        if hard_mining:
            positive, negative = hardest(distances, ~negatives)
        else:
            positive, negative = weighted(distances, ~negatives, softening=softening)
        has_negative = negatives.any(dim=1)
        # An anchor without others has no order to keep; its distance must not meet the arithmetic below as infinity.
        excess = torch.where(has_negative, positive - torch.where(has_negative, negative, 0.0), -1e30)
        rows = F.relu(excess + margin) if margin > 0 else torch.logaddexp(excess, torch.zeros_like(excess))
        possible = (positives.any(dim=1) & has_negative).any()
        return torch.where(possible, rows, rows * 0.0).mean()


@LOSS_REGISTRY.register()
class TripletLoss:
    """:func:`triplet` of the head's features, as ``loss_triplet``.

    Args:
        margin: 0 or more; 0 is the soft margin.
        norm_feat: compare directions only.
        hard_mining: the hardest pair of each anchor; else a weighted mean of all.
        scale: factor of the loss, 0 or more.

    Raises:
        ValueError: ``margin`` or ``scale`` is negative or not finite.
    """

    def __init__(
        self, *, margin: float = 0.3, norm_feat: bool = False, hard_mining: bool = True, scale: float = 1.0
    ) -> None:
        self.margin = check_factor(margin, "MODEL.LOSSES.TRI.MARGIN")
        self.norm_feat = norm_feat
        self.hard_mining = hard_mining
        self.scale = check_factor(scale, "MODEL.LOSSES.TRI.SCALE")

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from MODEL.LOSSES.TRI."""
        settings = cfg.MODEL.LOSSES.TRI
        return {
            "margin": settings.MARGIN,
            "norm_feat": settings.NORM_FEAT,
            "hard_mining": settings.HARD_MINING,
            "scale": settings.SCALE,
        }

    def __call__(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
        loss = triplet(
            take_output(outputs, "features", "TripletLoss"),
            targets,
            margin=self.margin,
            norm_feat=self.norm_feat,
            hard_mining=self.hard_mining,
        )
        return {"loss_triplet": self.scale * loss}
