"""From a map (B, C, h, w) to (B, C, 1, 1): what is left of the image's height and width.

Names and numbers are those of MODEL.HEADS.POOL_LAYER in fast-reid.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fastreid_lite.modeling.registries import POOLING_REGISTRY

__all__ = [
    "POOLING_REGISTRY",
    "AdaptiveAvgMaxPool",
    "ClipGlobalAvgPool",
    "FastGlobalAvgPool",
    "Flatten",
    "GeneralizedMeanPooling",
    "GeneralizedMeanPoolingP",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "Identity",
    "generalized_mean",
]


def generalized_mean(maps: Tensor, power: float | Tensor, *, output_size: tuple[int, int], eps: float) -> Tensor:
    """The power mean of each channel, ``(mean(max(x, eps) ** p)) ** (1 / p)``: 1 is the mean, infinity the maximum.

    Radenovic et al., Fine-tuning CNN image retrieval with no human annotation, PAMI 2019, equation 3.

    Args:
        maps: (B, C, h, w). Values below ``eps`` count as ``eps``, so a map should come from a ReLU.
        power: p, above 0; a tensor of one element where it trains.
        output_size: (rows, columns) of the result.
        eps: smallest value, above 0.

    Returns:
        (B, C, rows, columns), float32 at least: a power in half precision loses what the mean needs.
    """
    if maps.dtype in (torch.float16, torch.bfloat16):
        maps = maps.float()
    powers = maps.clamp(min=eps).pow(power)
    return F.adaptive_avg_pool2d(powers, output_size).pow(1.0 / power)


@POOLING_REGISTRY.register()
class GlobalAvgPool(nn.AdaptiveAvgPool2d):
    """The mean over height and width, or over the cells of ``output_size``."""

    def __init__(self, output_size: int | tuple[int, int] = 1) -> None:
        super().__init__(output_size)


@POOLING_REGISTRY.register()
class GlobalMaxPool(nn.AdaptiveMaxPool2d):
    """The largest value over height and width, or over the cells of ``output_size``."""

    def __init__(self, output_size: int | tuple[int, int] = 1) -> None:
        super().__init__(output_size)


@POOLING_REGISTRY.register()
class GeneralizedMeanPooling(nn.Module):
    """:func:`generalized_mean` with a fixed power.

    Args:
        norm: the power, above 0.
        output_size: (rows, columns), or one number for both.
        eps: smallest value of a map, above 0.

    Raises:
        ValueError: ``norm`` or ``eps`` is not above 0.
    """

    def __init__(self, norm: float = 3.0, *, output_size: int | tuple[int, int] = 1, eps: float = 1e-6) -> None:
        super().__init__()
        if norm <= 0 or eps <= 0:
            raise ValueError(f"norm and eps of {type(self).__name__} must be above 0, got norm {norm} and eps {eps}")
        self.p: float | Tensor = float(norm)
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else output_size
        self.eps = eps

    def forward(self, maps: Tensor) -> Tensor:
        return generalized_mean(maps, self.p, output_size=self.output_size, eps=self.eps)

    def extra_repr(self) -> str:
        return f"p={torch.as_tensor(self.p).item()}, output_size={self.output_size}, eps={self.eps}"


@POOLING_REGISTRY.register()
class GeneralizedMeanPoolingP(GeneralizedMeanPooling):
    """:func:`generalized_mean` with a power that trains: the parameter ``p`` (1,), ``norm`` at first."""

    def __init__(self, norm: float = 3.0, *, output_size: int | tuple[int, int] = 1, eps: float = 1e-6) -> None:
        super().__init__(norm, output_size=output_size, eps=eps)
        del self.p
        self.p = nn.Parameter(torch.full((1,), float(norm)))


@POOLING_REGISTRY.register()
class FastGlobalAvgPool(nn.Module):
    """The mean over height and width as one reduction.

    Args:
        flatten: give (B, C), not (B, C, 1, 1).
    """

    def __init__(self, flatten: bool = False) -> None:
        super().__init__()
        self.flatten = flatten

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3), keepdim=not self.flatten)


@POOLING_REGISTRY.register()
class AdaptiveAvgMaxPool(nn.Module):
    """The mean plus the largest value over height and width."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3), keepdim=True) + maps.amax(dim=(2, 3), keepdim=True)


@POOLING_REGISTRY.register()
class ClipGlobalAvgPool(nn.Module):
    """The mean over height and width, kept between 0 and 1."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3), keepdim=True).clamp(min=0.0, max=1.0)


@POOLING_REGISTRY.register()
class Flatten(nn.Module):
    """Every value of the map a channel: (B, C * h * w, 1, 1)."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.reshape(maps.shape[0], -1, 1, 1)


@POOLING_REGISTRY.register()
class Identity(nn.Identity):
    """The map as it is, for backbones that give (B, C, 1, 1) themselves."""
