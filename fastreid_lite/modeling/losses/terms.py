"""What several losses need: checked settings, the outputs of a head, and who is who in a batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Far below any logit of a loss, and still finite when two or three are added in float32.
MASKED = -1e30


def check_factor(value: float, key: str) -> float:
    """``value`` if it is finite and not negative.

    Raises:
        ValueError: it is not; the message names ``key``.
    """
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{key} must be a finite number of 0 or more, got {value}")
    return value


def take_output(outputs: dict[str, Tensor], name: str, loss: str) -> Tensor:
    """What the head gave under ``name``.

    Raises:
        KeyError: it gave none.
    """
    if name not in outputs:
        hint = "; a head without classes (MODEL.HEADS.NUM_CLASSES 0) has no scores" if name == "cls_outputs" else ""
        raise KeyError(
            f"{loss} (MODEL.LOSSES.NAME) needs the output {name!r} of the head, which gives {sorted(outputs)}{hint}"
        )
    return outputs[name]


def pair_masks(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Which pairs of a batch are of one identity: (other images of it, images of others), each (B, B) bool.

    >>> positives, negatives = pair_masks(torch.tensor([7, 7, 9]))
    >>> positives.tolist()
    [[False, True, False], [True, False, False], [False, False, False]]
    """
    same = targets.unsqueeze(0) == targets.unsqueeze(1)
    return same & ~torch.eye(len(targets), dtype=torch.bool, device=targets.device), ~same


def log_sum_exp_where(values: Tensor, mask: Tensor) -> Tensor:
    """``log(sum(exp(values)))`` over the true entries of each row, (B,); about -1e30 for a row without any."""
    return torch.where(mask, values, MASKED).logsumexp(dim=1)
