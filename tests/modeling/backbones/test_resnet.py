from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fastreid_lite.modeling import build_backbone
from fastreid_lite.modeling.backbones.resnet import ResNet


@pytest.mark.parametrize(("stride", "size"), [(1, (4, 2)), (2, (2, 1))])
@pytest.mark.parametrize("depth", ["18x", "50x"])
def test_the_last_stride_sets_the_size_of_the_map(depth: str, stride: int, size: tuple[int, int]) -> None:
    backbone = ResNet(depth, last_stride=stride)
    maps = backbone(torch.randn(2, 3, 64, 32))
    assert maps.shape == (2, backbone.feat_dim, *size)


def test_the_two_stem_poolings_look_at_other_windows() -> None:
    images = torch.arange(64.0).view(1, 1, 8, 8)
    ceil, pad = (ResNet("18x", stem_pool=kind).maxpool(images) for kind in ("ceil", "pad"))
    assert ceil.shape == pad.shape == (1, 1, 4, 4)
    assert ceil[0, 0, 0].tolist() == [18, 20, 22, 23]
    assert pad[0, 0, 0].tolist() == [9, 11, 13, 15]


def test_all_variants_together_run_and_have_the_published_names(make_cfg: Callable[..., Any]) -> None:
    changes = {"DEPTH": "50x", "WITH_IBN": True, "WITH_SE": True, "WITH_NL": True, "NL_CHANNELS": "half"}
    backbone = build_backbone(make_cfg({f"MODEL.BACKBONE.{key}": value for key, value in changes.items()}))
    state = backbone.state_dict()
    assert state["layer1.0.bn1.IN.weight"].shape == (32,)
    assert state["layer4.2.se.fc.2.weight"].shape == (2048, 128)
    assert state["NL_3.2.theta.weight"].shape == (512, 1024, 1, 1)
    assert not any(name.startswith(("NL_1", "NL_4", "layer4.0.bn1.IN")) for name in state)
    assert backbone(torch.randn(2, 3, 32, 32)).shape == (2, 2048, 2, 2)


def test_a_frozen_norm_leaves_convolutions_only(make_cfg: Callable[..., Any]) -> None:
    backbone = build_backbone(make_cfg({"MODEL.BACKBONE.NORM": "FrozenBN"}))
    assert all(parameter.dim() == 4 for parameter in backbone.parameters())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"DEPTH": "50"}, KeyError, r"unknown depth of build_resnet_backbone '50' \(MODEL.BACKBONE.DEPTH\).*'50x'"),
        ({"LAST_STRIDE": 3}, ValueError, "LAST_STRIDE must be 1 or 2, got 3"),
        ({"STEM_POOL": "floor"}, ValueError, "STEM_POOL must be one of ceil, pad, got 'floor'"),
        ({"NL_CHANNELS": "all"}, ValueError, "NL_CHANNELS must be one of one, half, got 'all'"),
        ({"WITH_NL": True}, ValueError, "WITH_NL is True, but DEPTH '18x' has no non-local blocks"),
        ({"PRETRAIN": True, "WITH_IBN": True}, FileNotFoundError, "timm has no weights with instance norm"),
        ({"NAME": "build_resnet"}, KeyError, "unknown backbone 'build_resnet'.*any network of timm as 'timm/NAME'"),
    ],
)
def test_a_setting_that_names_nothing_is_refused(
    make_cfg: Callable[..., Any], changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_backbone(make_cfg({f"MODEL.BACKBONE.{key}": value for key, value in changes.items()}))


def test_a_backbone_from_outside_must_say_its_width(
    make_cfg: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastreid_lite.modeling import BACKBONE_REGISTRY

    monkeypatch.setattr(BACKBONE_REGISTRY, "_entries", {"mine": lambda cfg: torch.nn.Conv2d(3, 8, 1)})
    with pytest.raises(TypeError, match=r"the backbone 'mine' \(MODEL.BACKBONE.NAME\) has no integer feat_dim"):
        build_backbone(make_cfg({"MODEL.BACKBONE.NAME": "mine"}))
