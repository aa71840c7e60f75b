"""Class scores in training: a scale and, at the true class, a margin (MODEL.HEADS.CLS_LAYER, SCALE, MARGIN).

A classifier layer has no weights; the head has them, and gives it ``feature . weight`` or, where ``normalized`` is
true, the cosine of the two.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fastreid_lite.modeling.registries import CLASSIFIER_REGISTRY

__all__ = ["CLASSIFIER_REGISTRY", "ArcSoftmax", "CircleSoftmax", "Classifier", "CosSoftmax", "Linear"]


class Classifier(nn.Module):
    """What all classifier layers share.

    Args:
        scale: s, the factor of the scores, above 0.
        margin: m.

    Raises:
        ValueError: ``scale`` is not above 0, or one of the two is not finite.
    """

    normalized = True

    def __init__(self, *, scale: float, margin: float) -> None:
        super().__init__()
        if not (math.isfinite(scale) and math.isfinite(margin) and scale > 0):
            raise ValueError(
                f"classifier layer {type(self).__name__!r} needs a finite scale above 0 (MODEL.HEADS.SCALE) and a "
                f"finite margin (MODEL.HEADS.MARGIN), got {scale} and {margin}"
            )
        self.scale = scale
        self.margin = margin

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The scores that go into the loss.

        Args:
            logits: (B, classes), not changed.
            targets: (B,) int64; -1 for a row whose true class is not among these.

        Returns:
            (B, classes), scaled, with the margin at the true class.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"scale={self.scale}, margin={self.margin}"


def at_target(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each row at its target, (B, 1), and the column that holds it, (B, 1); column 0 for target -1."""
    columns = targets.clamp(min=0).unsqueeze(1)
    return logits.gather(1, columns), columns


def put_at_target(logits: Tensor, targets: Tensor, values: Tensor) -> Tensor:
    """``logits`` with ``values`` (B, 1) at the targets; rows of target -1 stay. Nothing is changed in place."""
    present, columns = at_target(logits, targets)
    return logits.scatter(1, columns, torch.where(targets.unsqueeze(1) >= 0, values, present))


@CLASSIFIER_REGISTRY.register()
class Linear(Classifier):
    """Scores ``s * (feature . weight)``; the margin is not used."""

    normalized = False

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return logits * self.scale


@CLASSIFIER_REGISTRY.register()
class CosSoftmax(Classifier):
    """``s * (cos - m)`` at the true class. Wang et al., CosFace, CVPR 2018, equation 4."""

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        cosine, _ = at_target(logits, targets)
        return put_at_target(logits, targets, cosine - self.margin) * self.scale


@CLASSIFIER_REGISTRY.register()
class ArcSoftmax(Classifier):
    """``s * cos(angle + m)`` at the true class. Deng et al., ArcFace, CVPR 2019, equation 3.

    By the sum formula, cos(a + m) = cos a cos m - sin a sin m, with sin a = sqrt(1 - cos^2 a) kept above 3e-4: there
    the slope of the root would grow without bound (and a cosine rounded above 1 has none).
    """

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        cosine, _ = at_target(logits, targets)
        sine = (1.0 - cosine.square()).clamp(min=1e-7).sqrt()
        moved = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        return put_at_target(logits, targets, moved) * self.scale


@CLASSIFIER_REGISTRY.register()
class CircleSoftmax(Classifier):
    """Scores weighted by how far they are from their best. Sun et al., Circle loss, CVPR 2020, equations 4 and 5.

    ``s * max(1 + m - cos, 0) * (cos - (1 - m))`` at the true class, ``s * max(cos + m, 0) * (cos - m)`` elsewhere; the
    weights carry no gradient.
    """

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        cosine, _ = at_target(logits, targets)
        weight_true = (1.0 + self.margin - cosine.detach()).clamp(min=0.0)
        weight_other = (logits.detach() + self.margin).clamp(min=0.0)
        true = weight_true * (cosine - (1.0 - self.margin))
        other = weight_other * (logits - self.margin)
        return put_at_target(other, targets, true) * self.scale
