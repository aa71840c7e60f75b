"""Norm layers by name (MODEL.BACKBONE.NORM, MODEL.HEADS.NORM)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from torch import Tensor, nn
from torchvision.ops import FrozenBatchNorm2d

from fastreid_lite.utils import comm
from fastreid_lite.utils.registry import lookup

logger = logging.getLogger(__name__)

_GROUPS = 32


class SyncBatchNorm(nn.BatchNorm2d):
    """Batch norm whose statistics are those of all processes, and a plain one on the CPU, where torch has none.

    It calls torch's SyncBatchNorm without being one: DistributedDataParallel refuses a model on the CPU that has one.
    """

    process_group = None
    _check_non_zero_input_channels = nn.SyncBatchNorm._check_non_zero_input_channels

    def forward(self, maps: Tensor) -> Tensor:
        """(B, C, h, w) to the same shape."""
        if not maps.is_cpu:
            synchronised: Any = nn.SyncBatchNorm.forward
            normalised: Tensor = synchronised(self, maps)
            return normalised
        if self.training and comm.get_world_size() > 1:
            _warn_of_own_statistics()
        return super().forward(maps)


@cache
def _warn_of_own_statistics() -> None:
    logger.warning(
        "norm 'syncBN' (MODEL.BACKBONE.NORM, MODEL.HEADS.NORM) does not synchronise on the CPU: each process "
        "normalises its own images"
    )


def _group_norm(channels: int) -> nn.Module:
    if channels % _GROUPS != 0:
        raise ValueError(f"norm 'GN' has {_GROUPS} groups and needs a multiple of {_GROUPS} channels, got {channels}")
    return nn.GroupNorm(_GROUPS, channels)


_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "BN": nn.BatchNorm2d,
    "syncBN": SyncBatchNorm,
    "FrozenBN": FrozenBatchNorm2d,
    "GN": _group_norm,
}


def get_norm(name: str, channels: int, *, bias_freeze: bool = False) -> nn.Module:
    """A norm layer over ``channels`` channels of (B, C, h, w).

    Args:
        name: "BN"; "syncBN", batch norm whose statistics are those of all processes (on the CPU a plain batch norm,
            with a warning where there are several processes); "FrozenBN", batch norm with fixed statistics and scale;
            "GN", 32 groups.
        channels: number of channels.
        bias_freeze: the bias exists and stays at 0, as in a BNNeck.

    Raises:
        KeyError: ``name`` is not one of these.
        ValueError: "GN" and ``channels`` is not a multiple of 32.
    """
    norm: nn.Module = lookup(_NORMS, name, "norm", "MODEL.BACKBONE.NORM, MODEL.HEADS.NORM")(channels)
    if bias_freeze and isinstance(norm.bias, nn.Parameter):
        norm.bias.requires_grad_(False)
    return norm
