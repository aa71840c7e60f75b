from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fastreid_lite.modeling import Baseline, build_model
from fastreid_lite.modeling.backbones.osnet import ChannelGate, OSNet
from fastreid_lite.modeling.heads.embedding_head import EmbeddingHead
from fastreid_lite.modeling.layers.classifiers import Linear
from fastreid_lite.modeling.layers.pooling import GlobalAvgPool

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
R18 = {"MODEL.BACKBONE.DEPTH": "18x"}
OSNET = {"MODEL.BACKBONE.NAME": "build_osnet_backbone", "MODEL.BACKBONE.DEPTH": "x0_25"}
R50_ALL = {
    "MODEL.BACKBONE.DEPTH": "50x",
    "MODEL.BACKBONE.WITH_IBN": True,
    "MODEL.BACKBONE.WITH_NL": True,
    "MODEL.HEADS.POOL_LAYER": "GeneralizedMeanPoolingP",
    "MODEL.HEADS.CLS_LAYER": "CircleSoftmax",
    "MODEL.HEADS.SCALE": 64,
    "MODEL.HEADS.MARGIN": 0.35,
}


def make_batch(images: int = 8) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 256, (images, 3, 64, 32), dtype=torch.uint8, generator=generator)
    return {"images": pixels, "targets": torch.arange(images) % 4, "img_paths": ["x"] * images}


def tiny_model(**changes: Any) -> Baseline:
    heads = EmbeddingHead(128, num_classes=4, pool=GlobalAvgPool(), classifier=Linear(scale=1, margin=0))
    arguments = {"backbone": OSNet("x0_25"), "heads": heads, "losses": [], "pixel_mean": MEAN, "pixel_std": STD}
    return Baseline(**{**arguments, **changes})


@pytest.mark.parametrize("changes", [R18, OSNET, R50_ALL], ids=["R18", "OSNet", "R50 with all"])
def test_every_parameter_gets_a_gradient_in_one_step(changes: dict[str, Any], make_cfg: Callable[..., Any]) -> None:
    model = build_model(make_cfg(changes))
    for layer in model.modules():
        # With all its few hidden units off, as chance has it, a gate would have no gradient.
        if isinstance(layer, ChannelGate):
            layer.fc1.weight.data.abs_()
    losses = model(make_batch())
    assert set(losses) == {"loss_cls", "loss_triplet"}
    assert all(loss.dim() == 0 and loss.dtype == torch.float32 and bool(loss.isfinite()) for loss in losses.values())
    sum(losses.values()).backward()  # type: ignore[union-attr]
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    still = [name for name, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert frozen == ["heads.bottleneck.0.bias"]
    # Zero by construction: a new non-local block multiplies by 0 behind them.
    assert [name for name in still if ".NL_" not in name] == []
    assert all(not name.endswith((".W.1.weight", ".W.1.bias")) for name in still)


@pytest.mark.parametrize("changes", [R18, OSNET], ids=["R18", "OSNet"])
def test_evaluation_gives_the_same_features_for_a_batch_and_for_its_images(
    changes: dict[str, Any], make_cfg: Callable[..., Any]
) -> None:
    model = build_model(make_cfg({**changes, "MODEL.HEADS.NUM_CLASSES": 0})).eval()
    batch = make_batch()
    features = model(batch)
    assert features.shape == (8, model.backbone.feat_dim) and features.dtype == torch.float32
    assert torch.equal(features, model(batch["images"]))
    assert torch.equal(features, model(batch["images"].float()))


def test_pixels_are_normalised_once_and_not_in_place() -> None:
    model = tiny_model()
    images = torch.full((1, 3, 2, 2), 255.0)
    for _ in range(2):
        expected = (255 - torch.tensor(MEAN)) / torch.tensor(STD)
        assert torch.allclose(model.preprocess(images)[0, :, 0, 0], expected)
    assert bool((images == 255).all())


def test_mean_and_deviation_are_not_in_the_state_dict() -> None:
    model = tiny_model()
    assert not any("pixel" in name for name in model.state_dict())
    assert model.double().pixel_mean.dtype == torch.float64


def test_training_under_bfloat16_autocast_gives_float32_losses(make_cfg: Callable[..., Any]) -> None:
    model = build_model(make_cfg(OSNET))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = model(make_batch())
        features = model.eval()(make_batch())
    assert {loss.dtype for loss in losses.values()} == {torch.float32} and features.dtype == torch.float32
    sum(losses.values()).backward()  # type: ignore[union-attr]
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in model.parameters())


def test_a_loss_with_parameters_trains_with_the_model() -> None:
    class Centres(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.centres = nn.Parameter(torch.zeros(4, 128))

        def forward(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
            return {"loss_centre": (outputs["features"] - self.centres[targets]).square().mean()}

    model = tiny_model(losses=[Centres()])
    model(make_batch())["loss_centre"].backward()
    gradient = dict(model.named_parameters())["loss_modules.0.centres"].grad
    assert gradient is not None and bool(gradient.any())


def test_training_without_labels_is_refused() -> None:
    with pytest.raises(KeyError, match="needs the batch as a dict with 'targets'.*model.eval"):
        tiny_model()(make_batch()["images"])


def test_a_batch_without_images_is_refused() -> None:
    with pytest.raises(KeyError, match=r"a batch needs 'images', this one has \['pixels'\]"):
        tiny_model()({"pixels": 1})


@pytest.mark.parametrize("std", [[1.0, 1.0, 0.0], [1.0]])
def test_deviations_that_cannot_divide_are_refused(std: list[float]) -> None:
    with pytest.raises(ValueError, match="MODEL.PIXEL_MEAN and MODEL.PIXEL_STD need one number a channel each"):
        tiny_model(pixel_std=std)


def test_an_unknown_meta_architecture_is_named(make_cfg: Callable[..., Any]) -> None:
    with pytest.raises(KeyError, match="unknown meta architecture 'Basline' .*did you mean 'Baseline'"):
        build_model(make_cfg({"MODEL.META_ARCHITECTURE": "Basline"}))
