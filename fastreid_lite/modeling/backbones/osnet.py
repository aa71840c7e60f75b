"""OSNet: blocks that see several scales at once and weigh them by channel.

Zhou et al., Omni-scale feature learning for person re-identification, ICCV 2019. Neither timm nor torchvision has it.
State-dict names are those of its authors' weights and of fast-reid.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fastreid_lite.modeling.backbones.variants import refuse_variants
from fastreid_lite.modeling.backbones.weights import load_backbone_weights
from fastreid_lite.modeling.layers.initialization import init_kaiming
from fastreid_lite.modeling.layers.norm import get_norm
from fastreid_lite.modeling.registries import BACKBONE_REGISTRY
from fastreid_lite.utils.registry import lookup

# Depth: channels after conv1 and of stages 2 to 4.
_CHANNELS: dict[str, Any] = {
    "x0_25": (16, 64, 96, 128),
    "x0_5": (32, 128, 192, 256),
    "x0_75": (48, 192, 288, 384),
    "x1_0": (64, 256, 384, 512),
}
_BLOCKS_PER_STAGE = 2


class ConvNorm(nn.Module):
    """Convolution, norm and, unless ``relu`` is off, ReLU."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, norm: str, relu: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.bn = get_norm(norm, outputs)
        self.relu = nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(maps)))


class LightConv3x3(nn.Module):
    """A 3x3 convolution in two parts: 1x1 over channels, then 3x3 within each. Figure 3 (b) of the paper."""

    def __init__(self, channels: int, *, norm: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.bn = get_norm(norm, channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv2(self.conv1(maps))))


class ChannelGate(nn.Module):
    """Weighs the channels of a map by numbers between 0 and 1 made from their means: the aggregation gate."""

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // reduction, 1)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(channels // reduction, channels, 1)

    def forward(self, maps: Tensor) -> Tensor:
        means = maps.mean(dim=(2, 3), keepdim=True)
        return maps * self.fc2(self.relu(self.fc1(means))).sigmoid()


class OSBlock(nn.Module):
    """The residual block with four scales: one to four light 3x3 convolutions in a row. Figure 4 of the paper."""

    def __init__(self, inputs: int, outputs: int, *, norm: str) -> None:
        super().__init__()
        middle = outputs // 4
        self.conv1 = ConvNorm(inputs, middle, norm=norm)
        self.conv2a = LightConv3x3(middle, norm=norm)
        self.conv2b = _stream(middle, 2, norm=norm)
        self.conv2c = _stream(middle, 3, norm=norm)
        self.conv2d = _stream(middle, 4, norm=norm)
        self.gate = ChannelGate(middle)  # one for all scales
        self.conv3 = ConvNorm(middle, outputs, norm=norm, relu=False)
        self.downsample = ConvNorm(inputs, outputs, norm=norm, relu=False) if inputs != outputs else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        narrow = self.conv1(maps)
        mixed = self.gate(self.conv2a(narrow))
        for stream in (self.conv2b, self.conv2c, self.conv2d):
            mixed = mixed + self.gate(stream(narrow))
        shortcut = maps if self.downsample is None else self.downsample(maps)
        return self.relu(self.conv3(mixed) + shortcut)


def _stream(channels: int, length: int, *, norm: str) -> nn.Sequential:
    return nn.Sequential(*(LightConv3x3(channels, norm=norm) for _ in range(length)))


class OSNet(nn.Module):
    """OSNet without pooling and classifier: (B, 3, H, W) to (B, feat_dim, H / 16, W / 16).

    Args:
        depth: width as a part of the full one: "x0_25", "x0_5", "x0_75" or "x1_0"; feat_dim is 128, 256, 384 or 512.
        norm: name of the norm layers.

    Raises:
        KeyError: ``depth`` or ``norm`` is not known.
    """

    def __init__(self, depth: str, *, norm: str = "BN") -> None:
        super().__init__()
        stem, *widths = lookup(_CHANNELS, depth, "depth of build_osnet_backbone", "MODEL.BACKBONE.DEPTH")
        self.feat_dim: int = widths[-1]
        self.conv1 = ConvNorm(3, stem, kernel=7, stride=2, norm=norm)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.conv2 = _stage(stem, widths[0], norm=norm, halve=True)
        self.conv3 = _stage(widths[0], widths[1], norm=norm, halve=True)
        self.conv4 = _stage(widths[1], widths[2], norm=norm, halve=False)
        self.conv5 = ConvNorm(widths[2], widths[2], norm=norm)
        init_kaiming(self)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.maxpool(self.conv1(images))
        return self.conv5(self.conv4(self.conv3(self.conv2(maps))))


def _stage(inputs: int, outputs: int, *, norm: str, halve: bool) -> nn.Sequential:
    """Two blocks and, where the map is to be halved, a 1x1 convolution with an average pooling."""
    blocks: list[nn.Module] = [
        OSBlock(inputs if number == 0 else outputs, outputs, norm=norm) for number in range(_BLOCKS_PER_STAGE)
    ]
    if halve:
        blocks.append(nn.Sequential(ConvNorm(outputs, outputs, norm=norm), nn.AvgPool2d(2, stride=2)))
    return nn.Sequential(*blocks)


@BACKBONE_REGISTRY.register()
def build_osnet_backbone(cfg: Any) -> OSNet:
    """An :class:`OSNet` as MODEL.BACKBONE says. FEAT_DIM and LAST_STRIDE are not read.

    Raises:
        KeyError: see :class:`OSNet`.
        ValueError: WITH_IBN, WITH_SE or WITH_NL is set.
        FileNotFoundError: PRETRAIN without PRETRAIN_PATH.
    """
    settings = cfg.MODEL.BACKBONE
    refuse_variants(settings, "build_osnet_backbone")
    backbone = OSNet(settings.DEPTH, norm=settings.NORM)
    if settings.PRETRAIN:
        if not settings.PRETRAIN_PATH:
            raise FileNotFoundError(
                "MODEL.BACKBONE.PRETRAIN is True and timm has no weights of OSNet: set MODEL.BACKBONE.PRETRAIN_PATH to "
                "a weight file (its authors' load as they are), or MODEL.BACKBONE.PRETRAIN to False"
            )
        load_backbone_weights(backbone, settings.PRETRAIN_PATH)
    return backbone
