"""Instance norm for one half of the channels, batch norm for the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fastreid_lite.modeling.layers.norm import get_norm


class IBN(nn.Module):
    """IBN-a of Pan et al., Two at once: enhancing learning and generalization capacities via IBN-Net, ECCV 2018.

    Args:
        channels: number of channels; the first half is normalised by image, the rest by batch.
        norm: name of the norm of the second half.
    """

    def __init__(self, channels: int, *, norm: str = "BN") -> None:
        super().__init__()
        self.split = channels // 2
        # The names are those of the published checkpoints.
        self.IN = nn.InstanceNorm2d(self.split, affine=True)
        self.BN = get_norm(norm, channels - self.split)

    def forward(self, maps: Tensor) -> Tensor:
        first, second = maps[:, : self.split], maps[:, self.split :]
        return torch.cat((self.IN(first), self.BN(second.contiguous())), dim=1)
