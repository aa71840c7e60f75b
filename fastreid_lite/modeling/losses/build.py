"""Losses from a config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from fastreid_lite.modeling.losses.circle import CircleLoss
from fastreid_lite.modeling.losses.cosface import Cosface
from fastreid_lite.modeling.losses.cross_entropy import CrossEntropyLoss
from fastreid_lite.modeling.losses.triplet import TripletLoss
from fastreid_lite.modeling.registries import LOSS_REGISTRY, construct

__all__ = ["LOSS_REGISTRY", "CircleLoss", "Cosface", "CrossEntropyLoss", "Loss", "TripletLoss", "build_losses"]

Loss = Callable[[dict[str, Tensor], Tensor], dict[str, Tensor]]


def build_losses(cfg: Any) -> list[Loss]:
    """The losses that MODEL.LOSSES.NAME names, in that order; one name may stand without a list.

    Raises:
        ValueError: no name, or one twice.
        KeyError: no such loss.
    """
    names = cfg.MODEL.LOSSES.NAME
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError(f"MODEL.LOSSES.NAME is empty; name at least one of {', '.join(LOSS_REGISTRY.names())}")
    if len(set(names)) < len(names):
        raise ValueError(f"MODEL.LOSSES.NAME names a loss twice: {names}; use its SCALE to count it more")
    return [construct(LOSS_REGISTRY, name, cfg) for name in names]
