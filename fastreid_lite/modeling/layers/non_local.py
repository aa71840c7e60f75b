"""Every position of a map looks at all others."""

from __future__ import annotations

from torch import Tensor, nn

from fastreid_lite.modeling.layers.norm import get_norm


class NonLocal(nn.Module):
    """A residual non-local block, dot-product version. Wang et al., Non-local neural networks, CVPR 2018, section 3.2.

    The products are divided by the number of positions, there is no softmax. The last norm has scale 0 at first, so
    that a new block changes nothing; hence all other gradients of the block are 0 in the first step.

    Args:
        channels: number of channels of the map.
        inner_channels: width of the three projections.
        norm: name of the last norm.
    """

    def __init__(self, channels: int, *, inner_channels: int, norm: str = "BN") -> None:
        super().__init__()
        # The names are those of published checkpoints.
        self.g = nn.Conv2d(channels, inner_channels, kernel_size=1)
        self.W = nn.Sequential(nn.Conv2d(inner_channels, channels, kernel_size=1), get_norm(norm, channels))
        self.theta = nn.Conv2d(channels, inner_channels, kernel_size=1)
        self.phi = nn.Conv2d(channels, inner_channels, kernel_size=1)
        nn.init.zeros_(self.W[1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.W[1].bias)  # type: ignore[arg-type]

    def forward(self, maps: Tensor) -> Tensor:
        value = self.g(maps).flatten(2)  # (B, inner, positions), like the next two
        query = self.theta(maps).flatten(2)
        key = self.phi(maps).flatten(2)
        # (query^T key) value = query^T (key value^T): with few inner channels the second order never makes the
        # positions x positions matrix.
        context = key @ value.transpose(1, 2) / value.shape[-1]  # (B, inner, inner)
        mixed = context.transpose(1, 2) @ query  # (B, inner, positions)
        return maps + self.W(mixed.unflatten(2, maps.shape[2:]))
