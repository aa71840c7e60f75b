"""What re-id changes in a ResNet of timm, one small function each. All change the network that they are given."""

from __future__ import annotations

from typing import Any

from torch import nn

from fastreid_lite.modeling.layers.ibn import IBN
from fastreid_lite.modeling.layers.squeeze_excitation import SELayer

STEM_POOLS = ("ceil", "pad")


def set_last_stride(network: Any, stride: int) -> None:
    """Let the last stage halve the map (2) or keep it (1), which leaves a person's details apart.

    Luo et al., Bag of tricks, CVPR workshops 2019, section 3.4.

    Raises:
        ValueError: ``stride`` is neither 1 nor 2.
    """
    if stride not in (1, 2):
        raise ValueError(f"MODEL.BACKBONE.LAST_STRIDE must be 1 or 2, got {stride!r}")
    block = network.layer4[0]
    # A bottleneck has its stride in the 3x3 convolution, a basic block in the first.
    strided = block.conv2 if hasattr(block, "conv3") else block.conv1
    strided.stride = (stride, stride)
    block.stride = stride
    block.downsample[0].stride = (stride, stride)


def set_stem_pool(network: Any, kind: str) -> None:
    """Choose the 3x3 pooling of stride 2 after the first convolution.

    Args:
        kind: "ceil", no padding and sizes rounded up, as in fast-reid's checkpoints; "pad", padding 1, as in
            torchvision's and timm's. The map has the same size for even inputs, its windows lie one pixel apart.

    Raises:
        ValueError: another ``kind``.
    """
    if kind not in STEM_POOLS:
        raise ValueError(f"MODEL.BACKBONE.STEM_POOL must be one of {', '.join(STEM_POOLS)}, got {kind!r}")
    if kind == "ceil":
        network.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)
    else:
        network.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)


def add_ibn(network: Any, norm: str) -> None:
    """Put :class:`IBN` in place of the first norm of each block of stages 1 to 3; stage 4 keeps its norms."""
    for stage in (network.layer1, network.layer2, network.layer3):
        for block in stage:
            block.bn1 = IBN(block.conv1.out_channels, norm=norm)


def add_squeeze_excitation(network: Any) -> None:
    """Put a :class:`SELayer` after the last norm of every block."""
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        for block in stage:
            last = block.conv3 if hasattr(block, "conv3") else block.conv2
            block.se = SELayer(last.out_channels)
