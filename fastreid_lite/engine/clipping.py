"""Gradient clipping, by norm or by value, over all parameters or for each group."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

KINDS, SCOPES = ("norm", "value"), ("global", "group")


class GradientClipper:
    """Limits gradients that are there and unscaled.

    In two parts, so that the guard can look in between: clipping hides an infinite gradient, and spreads a NaN to all.

    Args:
        kind: "norm" scales gradients so that their joint norm is at most ``limit``; "value" cuts every element to
            [-limit, limit].
        limit: > 0.
        norm_type: the p of the norm, > 0; infinity for the largest element.
        scope: the norm is taken over all parameters ("global"), or for each parameter group of the optimizer by itself
            ("group", as fast-reid does).
    """

    def __init__(self, kind: str, limit: float, *, norm_type: float = 2.0, scope: str = "global") -> None:
        if kind not in KINDS:
            raise ValueError(f"SOLVER.CLIP_GRADIENTS.CLIP_TYPE is {kind!r}, expected one of {', '.join(KINDS)}")
        if scope not in SCOPES:
            raise ValueError(f"SOLVER.CLIP_GRADIENTS.SCOPE is {scope!r}, expected one of {', '.join(SCOPES)}")
        if not limit > 0:
            raise ValueError(f"SOLVER.CLIP_GRADIENTS.CLIP_VALUE is {limit!r}, expected a number > 0")
        if not norm_type > 0:
            raise ValueError(f"SOLVER.CLIP_GRADIENTS.NORM_TYPE is {norm_type!r}, expected a number > 0")
        self.kind, self.limit, self.norm_type, self.scope = kind, float(limit), float(norm_type), scope

    def norms(self, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        """The norms that decide, before anything is clipped: one, or one for each group; none for "value"."""
        if self.kind == "value":
            return []
        return [
            nn.utils.get_total_norm([parameter.grad for parameter in group], self.norm_type)  # type: ignore[misc]
            for group in self._groups(optimizer)
        ]

    def clip(self, optimizer: torch.optim.Optimizer, norms: Sequence[torch.Tensor]) -> None:
        """Clip in place, by what :meth:`norms` found."""
        groups = self._groups(optimizer)
        if self.kind == "value":
            for group in groups:
                nn.utils.clip_grad_value_(group, self.limit)
            return
        for group, norm in zip(groups, norms):
            nn.utils.clip_grads_with_norm_(group, self.limit, norm)

    def _groups(self, optimizer: torch.optim.Optimizer) -> list[list[torch.Tensor]]:
        """Parameters that have a gradient, as they are clipped together; none without a parameter."""
        groups = [
            [parameter for parameter in group["params"] if parameter.grad is not None]
            for group in optimizer.param_groups
        ]
        if self.scope == "global":
            groups = [[parameter for group in groups for parameter in group]]
        return [group for group in groups if group]
