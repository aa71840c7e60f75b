"""A gate for each channel, from the mean of all channels."""

from __future__ import annotations

from torch import Tensor, nn


class SELayer(nn.Module):
    """Hu et al., Squeeze-and-excitation networks, CVPR 2018, section 3.

    Args:
        channels: number of channels.
        reduction: channels over the width of the hidden layer.
    """

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        hidden = max(channels // reduction, 1)
        self.fc = nn.Sequential(
            nn.Linear(channels, hidden, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, channels, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, maps: Tensor) -> Tensor:
        gates = self.fc(maps.mean(dim=(2, 3)))
        return maps * gates[:, :, None, None]
