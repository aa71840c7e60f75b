from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.modeling.heads.build import build_heads
from fastreid_lite.modeling.heads.embedding_head import EmbeddingHead
from fastreid_lite.modeling.layers.classifiers import CLASSIFIER_REGISTRY, CosSoftmax, Linear
from fastreid_lite.modeling.layers.pooling import POOLING_REGISTRY, GlobalAvgPool, Identity

CASES = ["head_gap_before", "head_gem_reduced_before", "head_gemp_reduced_after", "head_gemp_after"]


def reference_head(case: dict[str, Any], fill: ModuleType, dtype: torch.dtype) -> EmbeddingHead:
    head = EmbeddingHead(
        32,
        num_classes=10,
        pool=POOLING_REGISTRY.get(case["pool"])(),
        classifier=CLASSIFIER_REGISTRY.get(case["layer"])(scale=case["scale"], margin=case["margin"]),
        embedding_dim=case["embedding_dim"],
        neck_feat=case["neck_feat"],
    )
    assert [[name, list(value.shape)] for name, value in head.state_dict().items()] == case["state_dict"]
    assert [name for name, p in head.named_parameters() if not p.requires_grad] == case["not_trainable"]
    head.load_state_dict({name: torch.from_numpy(fill.fill(name, shape)) for name, shape in case["state_dict"]})
    return head.to(dtype)


@pytest.mark.parametrize("name", CASES)
def test_a_head_gives_the_outputs_of_fast_reid(name: str, golden: Path, fill: ModuleType) -> None:
    case = json.loads((golden / "classifiers.json").read_text())["cases"][name]
    numbers = np.load(golden / "classifiers.npz")
    maps, targets = torch.from_numpy(numbers["in/maps"]), torch.from_numpy(numbers["in/labels"])
    head = reference_head(case, fill, torch.float32)
    found = {"eval_features": head.eval()(maps)}
    outputs = head.train()(maps, targets)
    neck = head.bottleneck[-1]
    found |= {
        "train_logits": outputs["cls_outputs"],
        "plain_logits": outputs["pred_class_logits"],
        "train_features": outputs["features"],
        "running_mean_after": neck.running_mean,
        "running_var_after": neck.running_var,
    }
    for key, value in found.items():
        expected = numbers[f"{name}/{key}"]
        assert np.abs(value.detach().numpy() - expected).max() <= 1e-5 * np.abs(expected).max(), key


def test_without_classes_there_is_no_classifier_and_features_still_come() -> None:
    head = EmbeddingHead(8, num_classes=0, pool=GlobalAvgPool(), classifier=Linear(scale=1, margin=0))
    assert "weight" not in head.state_dict()
    assert head.eval()(torch.randn(2, 8, 4, 2)).shape == (2, 8)
    assert set(head.train()(torch.randn(2, 8, 4, 2), torch.tensor([0, 1]))) == {"features"}


def test_without_neck_and_reduction_the_pooled_feature_is_given() -> None:
    head = EmbeddingHead(
        8, num_classes=3, pool=GlobalAvgPool(), classifier=Linear(scale=1, margin=0), with_bnneck=False
    )
    maps = torch.randn(2, 8, 4, 2)
    assert torch.allclose(head.eval()(maps), maps.mean((2, 3)))
    assert not list(head.bottleneck.parameters())


def test_cosines_are_not_rounded_by_autocast() -> None:
    head = EmbeddingHead(16, num_classes=5, pool=Identity(), classifier=CosSoftmax(scale=64, margin=0.3))
    maps, targets = torch.randn(8, 16, 1, 1), torch.arange(8) % 5
    plain = head(maps, targets)["cls_outputs"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = head(maps, targets)["cls_outputs"]
    assert under_autocast.dtype == torch.float32
    assert torch.allclose(plain, under_autocast, atol=1e-4)


def test_a_map_that_was_not_pooled_is_refused() -> None:
    head = EmbeddingHead(8, num_classes=3, pool=Identity(), classifier=Linear(scale=1, margin=0))
    with pytest.raises(ValueError, match=r"Identity \(MODEL.HEADS.POOL_LAYER\) left a map of \(4, 2\)"):
        head(torch.randn(2, 8, 4, 2), torch.tensor([0, 1]))


def test_flatten_takes_its_width_from_the_config(make_cfg: Callable[..., Any]) -> None:
    changes = {"MODEL.HEADS.POOL_LAYER": "Flatten", "MODEL.BACKBONE.FEAT_DIM": 64}
    assert build_heads(make_cfg(changes), 8).eval()(torch.randn(2, 8, 4, 2)).shape == (2, 64)
    head = build_heads(make_cfg({**changes, "MODEL.HEADS.NAME": "OSNetHead"}), 8).eval()
    assert head(torch.randn(2, 8, 4, 2)).shape == (2, 512)


@pytest.mark.parametrize("name", ["EmbeddingHead", "OSNetHead"])
def test_both_heads_refuse_the_same_settings(make_cfg: Callable[..., Any], name: str) -> None:
    def head(**changes: Any) -> Any:
        return build_heads(
            make_cfg({f"MODEL.HEADS.{key}": value for key, value in {"NAME": name, **changes}.items()}), 8
        )

    maps = torch.randn(2, 8, 4, 2)
    with pytest.raises(ValueError, match="EMBEDDING_DIM must be 0 or more, got -1"):
        head(EMBEDDING_DIM=-1)
    with pytest.raises(ValueError, match=r"Identity \(MODEL.HEADS.POOL_LAYER\) left a map of \(4, 2\)"):
        head(POOL_LAYER="Identity").eval()(maps)
    with pytest.raises(ValueError, match=r"Flatten .* gives 64 channels .*made for 2048; set MODEL.*FEAT_DIM to 64"):
        head(POOL_LAYER="Flatten").eval()(maps)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"NECK_FEAT": "behind"}, ValueError, "NECK_FEAT must be one of before, after, got 'behind'"),
        ({"EMBEDDING_DIM": -1}, ValueError, "EMBEDDING_DIM must be 0 or more, got -1"),
        ({"NUM_CLASSES": -1}, ValueError, "NUM_CLASSES must be 0 or more, got -1"),
        ({"NAME": "EmbedingHead"}, KeyError, "unknown head 'EmbedingHead' .*did you mean 'EmbeddingHead'"),
        ({"CLS_LAYER": "ArcSoftmx"}, KeyError, "unknown classifier layer 'ArcSoftmx'.*did you mean 'ArcSoftmax'"),
        ({"POOL_LAYER": "Avg"}, KeyError, "unknown pooling layer 'Avg'"),
    ],
)
def test_a_setting_that_names_nothing_is_refused(
    make_cfg: Callable[..., Any], changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_heads(make_cfg({f"MODEL.HEADS.{key}": value for key, value in changes.items()}), 8)
