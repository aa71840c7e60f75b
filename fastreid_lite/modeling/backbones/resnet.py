"""ResNet 18, 34, 50 and 101 for re-id, made from timm's by the functions of ``surgery``.

He et al., Deep residual learning for image recognition, CVPR 2016. State-dict names are those of fast-reid and of
torchvision, so that checkpoints of both load.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fastreid_lite.modeling.backbones import surgery
from fastreid_lite.modeling.backbones.weights import cached_timm_weights, load_backbone_weights
from fastreid_lite.modeling.layers.non_local import NonLocal
from fastreid_lite.modeling.layers.norm import get_norm
from fastreid_lite.modeling.registries import BACKBONE_REGISTRY
from fastreid_lite.utils.registry import lookup

# Depth: (name in timm, number of last blocks of each stage that a non-local block follows).
_DEPTHS: dict[str, Any] = {
    "18x": ("resnet18", (0, 0, 0, 0)),
    "34x": ("resnet34", (0, 0, 0, 0)),
    "50x": ("resnet50", (0, 2, 3, 0)),
    "101x": ("resnet101", (0, 2, 9, 0)),
}
_NL_CHANNELS = ("one", "half")


class ResNet(nn.Module):
    """A ResNet without pooling and classifier: (B, 3, H, W) to (B, feat_dim, H / 16, W / 16), or / 32.

    The map is of a 16th where the last stride is 1, of a 32nd where it is 2.

    Args:
        depth: "18x", "34x", "50x" or "101x".
        last_stride: stride of the last stage, 1 or 2.
        norm: name of the norm layers.
        stem_pool: "ceil" or "pad", see :func:`surgery.set_stem_pool`.
        with_ibn: instance norm in stages 1 to 3.
        with_se: squeeze-and-excitation in all blocks.
        with_nl: non-local blocks after the last blocks of stages 2 and 3; depths 50x and 101x have them.
        nl_channels: inner width of a non-local block: "one", as in fast-reid's checkpoints, or "half" of the map's.

    Raises:
        KeyError: ``depth`` or ``norm`` is not known.
        ValueError: another argument is not one of those named.
    """

    NL_1: nn.ModuleList
    NL_2: nn.ModuleList
    NL_3: nn.ModuleList
    NL_4: nn.ModuleList

    def __init__(
        self,
        depth: str,
        *,
        last_stride: int = 1,
        norm: str = "BN",
        stem_pool: str = "ceil",
        with_ibn: bool = False,
        with_se: bool = False,
        with_nl: bool = False,
        nl_channels: str = "one",
    ) -> None:
        super().__init__()
        name, non_local_counts = lookup(_DEPTHS, depth, "depth of build_resnet_backbone", "MODEL.BACKBONE.DEPTH")
        # timm takes seconds to import, so only who builds one of its networks waits for it.
        import timm

        def make_norm(channels: int, **placement: Any) -> nn.Module:
            # Newer versions of timm also say device and dtype, here always None.
            return get_norm(norm, channels)

        # With the last norm of each block at 0, as is timm's habit, most weights have no gradient in the first step.
        network: Any = timm.create_model(
            name,
            num_classes=0,
            global_pool="",
            zero_init_last=False,
            norm_layer=make_norm,
        )
        surgery.set_last_stride(network, last_stride)
        surgery.set_stem_pool(network, stem_pool)
        if with_ibn:
            surgery.add_ibn(network, norm)
        if with_se:
            surgery.add_squeeze_excitation(network)
        self.feat_dim: int = network.num_features
        self.conv1 = network.conv1
        self.bn1 = network.bn1
        self.act1 = network.act1
        self.maxpool = network.maxpool
        self.layer1 = network.layer1
        self.layer2 = network.layer2
        self.layer3 = network.layer3
        self.layer4 = network.layer4
        for number, count in enumerate(non_local_counts, start=1):
            stage = getattr(self, f"layer{number}")
            blocks = _non_local_blocks(stage, count if with_nl else 0, norm=norm, nl_channels=nl_channels)
            self.add_module(f"NL_{number}", blocks)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.maxpool(self.act1(self.bn1(self.conv1(images))))
        for stage, non_local in (
            (self.layer1, self.NL_1),
            (self.layer2, self.NL_2),
            (self.layer3, self.NL_3),
            (self.layer4, self.NL_4),
        ):
            # The last blocks of the stage are followed by a non-local block each.
            first = len(stage) - len(non_local)
            for number, block in enumerate(stage):
                maps = block(maps)
                if number >= first:
                    maps = non_local[number - first](maps)
        return maps


def _non_local_blocks(stage: Any, count: int, *, norm: str, nl_channels: str) -> nn.ModuleList:
    """``count`` non-local blocks as wide as the maps of ``stage``."""
    if nl_channels not in _NL_CHANNELS:
        raise ValueError(f"MODEL.BACKBONE.NL_CHANNELS must be one of {', '.join(_NL_CHANNELS)}, got {nl_channels!r}")
    last = stage[-1]
    channels = (last.conv3 if hasattr(last, "conv3") else last.conv2).out_channels
    inner_channels = 1 if nl_channels == "one" else channels // 2
    return nn.ModuleList(NonLocal(channels, inner_channels=inner_channels, norm=norm) for _ in range(count))


@BACKBONE_REGISTRY.register()
def build_resnet_backbone(cfg: Any) -> ResNet:
    """A :class:`ResNet` as MODEL.BACKBONE says.

    FEAT_DIM is not read: the network knows its width, 512 for 18x and 34x, 2048 for 50x and 101x. PRETRAIN without
    PRETRAIN_PATH takes timm's ``tv_in1k`` weights (torchvision's, which fast-reid's recipes begin from) from the cache.

    Raises:
        KeyError, ValueError: see :class:`ResNet`.
        ValueError: non-local blocks for a depth that has none.
        FileNotFoundError: PRETRAIN, and no file to take the weights from.
    """
    settings = cfg.MODEL.BACKBONE
    if settings.WITH_NL and settings.DEPTH in ("18x", "34x"):
        raise ValueError(
            f"MODEL.BACKBONE.WITH_NL is True, but DEPTH {settings.DEPTH!r} has no non-local blocks; use 50x or 101x"
        )
    backbone = ResNet(
        settings.DEPTH,
        last_stride=settings.LAST_STRIDE,
        norm=settings.NORM,
        stem_pool=settings.STEM_POOL,
        with_ibn=settings.WITH_IBN,
        with_se=settings.WITH_SE,
        with_nl=settings.WITH_NL,
        nl_channels=settings.NL_CHANNELS,
    )
    if settings.PRETRAIN:
        path = settings.PRETRAIN_PATH
        if not path and settings.WITH_IBN:
            raise FileNotFoundError(
                "MODEL.BACKBONE.PRETRAIN is True and WITH_IBN is True, but timm has no weights with instance norm: set "
                "MODEL.BACKBONE.PRETRAIN_PATH to a weight file, or MODEL.BACKBONE.PRETRAIN to False"
            )
        load_backbone_weights(backbone, path or cached_timm_weights(f"{_DEPTHS[settings.DEPTH][0]}.tv_in1k"))
    return backbone
