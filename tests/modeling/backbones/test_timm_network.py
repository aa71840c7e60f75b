from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fastreid_lite.modeling import build_backbone
from fastreid_lite.modeling.backbones.timm_network import TimmBackbone


@pytest.mark.parametrize(
    ("name", "width", "size"),
    [
        ("resnet18", 512, (2, 1)),
        ("mobilenetv3_small_050", 1024, (2, 1)),
        ("convnext_atto", 320, (2, 1)),
        ("vit_tiny_patch16_224", 192, (1, 1)),
        ("gmixer_12_224", 384, (1, 1)),
    ],
)
def test_maps_and_tokens_become_maps(name: str, width: int, size: tuple[int, int]) -> None:
    backbone = TimmBackbone(name, image_size=(64, 32))
    assert backbone.feat_dim == width and backbone.training
    maps = backbone(torch.randn(2, 3, 64, 32))
    assert maps.shape == (2, width, *size)
    maps.square().sum().backward()
    assert [key for key, parameter in backbone.named_parameters() if parameter.grad is None] == []


def test_channels_last_maps_are_turned() -> None:
    backbone = TimmBackbone("swin_tiny_patch4_window7_224", image_size=(64, 64))
    assert backbone(torch.randn(1, 3, 64, 64)).shape == (1, 768, 2, 2)


def test_a_network_that_cannot_be_without_its_pooling_keeps_it() -> None:
    backbone = TimmBackbone("coat_tiny", image_size=(32, 32))
    assert backbone(torch.randn(1, 3, 32, 32)).shape == (1, 152, 1, 1)


def test_images_of_a_size_that_a_network_cannot_take_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"'timm/nest_tiny' cannot be used with images of 64x32 \(INPUT.SIZE_TRAIN, .*\): .*square"
    ):
        TimmBackbone("nest_tiny", image_size=(64, 32))


def test_the_class_token_is_the_feature() -> None:
    backbone = TimmBackbone("vit_tiny_patch16_224", image_size=(64, 32)).eval()
    images = torch.randn(2, 3, 64, 32)
    assert torch.equal(backbone(images)[:, :, 0, 0], backbone.network.forward_features(images)[:, 0])


def test_patch_tokens_are_averaged_where_there_is_no_class_token() -> None:
    backbone = TimmBackbone("gmixer_12_224", image_size=(64, 32)).eval()
    images = torch.randn(2, 3, 64, 32)
    assert torch.allclose(backbone(images)[:, :, 0, 0], backbone.network.forward_features(images).mean(1))


def test_rates_of_dropping_reach_a_transformer(make_cfg: Callable[..., Any]) -> None:
    changes = {"MODEL.BACKBONE.NAME": "timm/vit_tiny_patch16_224", "MODEL.BACKBONE.DROP_PATH_RATIO": 0.2}
    backbone = build_backbone(make_cfg(changes))
    assert backbone.network.blocks[-1].drop_path1.drop_prob == pytest.approx(0.2)  # type: ignore[union-attr,index]


def test_an_unknown_network_names_the_nearest(make_cfg: Callable[..., Any]) -> None:
    with pytest.raises(KeyError, match="timm has no network 'resnet_18'; did you mean 'timm/resnet18'"):
        build_backbone(make_cfg({"MODEL.BACKBONE.NAME": "timm/resnet_18"}))


def test_two_image_sizes_are_refused_for_a_network_of_one(make_cfg: Callable[..., Any]) -> None:
    changes = {"MODEL.BACKBONE.NAME": "timm/vit_tiny_patch16_224", "INPUT.SIZE_TEST": [128, 64]}
    with pytest.raises(ValueError, match=r"SIZE_TRAIN is \(64, 32\) and INPUT.SIZE_TEST \(128, 64\); make them equal"):
        build_backbone(make_cfg(changes))


@pytest.mark.parametrize("crop", [[48, 16], [32]])
def test_a_network_of_one_size_gets_the_size_of_the_crop(make_cfg: Callable[..., Any], crop: list[int]) -> None:
    changes: dict[str, Any] = {"INPUT.SIZE_TRAIN": [128], "INPUT.CROP.ENABLED": True, "INPUT.CROP.SIZE": crop}
    backbone = build_backbone(make_cfg({"MODEL.BACKBONE.NAME": "timm/vit_tiny_patch16_224", **changes}))
    assert backbone(torch.zeros(1, 3, crop[0], crop[-1])).shape == (1, 192, 1, 1)
    assert backbone.network.patch_embed.img_size == (crop[0], crop[-1])


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "resnet18"])
def test_a_size_of_one_number_without_a_crop_is_refused(make_cfg: Callable[..., Any], name: str) -> None:
    with pytest.raises(ValueError, match=r"INPUT.SIZE_TRAIN is \[128\], which leaves images of different sizes"):
        build_backbone(make_cfg({"MODEL.BACKBONE.NAME": f"timm/{name}", "INPUT.SIZE_TRAIN": [128]}))


@pytest.mark.parametrize("key", ["WITH_IBN", "WITH_SE", "WITH_NL"])
def test_a_variant_of_a_resnet_of_our_own_is_refused(make_cfg: Callable[..., Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"MODEL.BACKBONE.{key} is True, but timm/resnet18 has no such variant"):
        build_backbone(make_cfg({"MODEL.BACKBONE.NAME": "timm/resnet18", f"MODEL.BACKBONE.{key}": True}))


def test_an_option_that_a_network_does_not_take_is_named() -> None:
    with pytest.raises(ValueError, match="'timm/resnet18' does not take the options {'attn_drop_rate': 0.1}"):
        TimmBackbone("resnet18", image_size=(64, 32), options={"attn_drop_rate": 0.1})


def test_other_pixels_than_those_of_the_weights_are_said(
    make_cfg: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    import timm

    from fastreid_lite.modeling.backbones import timm_network

    path = tmp_path / "weights.pth"
    torch.save(timm.create_model("vit_tiny_patch16_224").state_dict(), path)
    monkeypatch.setattr(timm_network, "cached_timm_weights", lambda name: path)
    changes = {"MODEL.BACKBONE.NAME": "timm/vit_tiny_patch16_224", "MODEL.BACKBONE.PRETRAIN": True}
    backbone = build_backbone(make_cfg(changes))
    assert backbone.network.pos_embed.shape[1] == 1 + 4 * 2  # type: ignore[union-attr]
    assert "trained with MODEL.PIXEL_MEAN [127.5, 127.5, 127.5], but it is [123.675" in caplog.text
