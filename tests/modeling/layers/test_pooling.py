from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fastreid_lite.modeling.layers.pooling import POOLING_REGISTRY, GeneralizedMeanPooling, GeneralizedMeanPoolingP

CASES = [
    "Identity",
    "Flatten",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GeneralizedMeanPooling",
    "GeneralizedMeanPoolingP",
    "FastGlobalAvgPool",
    "AdaptiveAvgMaxPool",
    "ClipGlobalAvgPool",
    "FastGlobalAvgPool_flatten",
    "GeneralizedMeanPooling_p1",
    "GeneralizedMeanPooling_p6.5_2x1",
    "GeneralizedMeanPoolingP_p2.5",
    "GlobalAvgPool_2x1",
    "GlobalMaxPool_2x1",
]


def relative(found: torch.Tensor | None, expected: np.ndarray) -> float:
    assert found is not None and tuple(found.shape) == expected.shape
    return float(np.abs(found.detach().numpy() - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_a_pooling_layer_gives_the_values_and_gradients_of_fast_reid(name: str, golden: Path) -> None:
    case = json.loads((golden / "pooling.json").read_text())["cases"][name]
    numbers = np.load(golden / "pooling.npz")
    arguments = {key: tuple(v) if isinstance(v, list) else v for key, v in case["arguments"].items()}
    layer = POOLING_REGISTRY.get(case["layer"])(**arguments)
    maps = torch.from_numpy(numbers["in/x"]).requires_grad_()
    pooled = layer(maps)
    pooled.backward(torch.from_numpy(numbers[f"{name}/upstream"]))
    assert relative(pooled, numbers[f"{name}/y"]) < 1e-6
    assert relative(maps.grad, numbers[f"{name}/grad_x"]) < 1e-6
    assert [key for key, _ in layer.named_parameters()] == list(case.get("parameters", {}))
    if "parameters" in case:
        assert relative(layer.p.grad, numbers[f"{name}/grad_p"]) < 1e-6


def test_the_test_covers_every_reference_case(golden: Path) -> None:
    assert sorted(json.loads((golden / "pooling.json").read_text())["cases"]) == sorted(CASES)


def test_the_generalized_mean_of_small_values_is_finite_in_half_precision() -> None:
    maps = torch.full((1, 2, 2, 2), 1e-3, dtype=torch.float16, requires_grad=True)
    pooled = GeneralizedMeanPooling()(maps)
    pooled.sum().backward()
    assert torch.allclose(pooled, torch.tensor(1e-3), rtol=1e-3)
    assert maps.grad is not None and bool(maps.grad.isfinite().all())


def test_the_power_is_a_parameter_only_where_it_trains() -> None:
    assert not list(GeneralizedMeanPooling().parameters())
    assert GeneralizedMeanPoolingP().state_dict()["p"].tolist() == [3.0]
    assert "p=3.0" in repr(GeneralizedMeanPoolingP())


def test_a_power_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="norm and eps of GeneralizedMeanPooling must be above 0, got norm 0"):
        GeneralizedMeanPooling(0)


def test_an_unknown_pooling_layer_names_the_nearest() -> None:
    with pytest.raises(KeyError, match=r"MODEL.HEADS.POOL_LAYER.*did you mean 'GlobalAvgPool'"):
        POOLING_REGISTRY.get("GlobalAvgPol")
