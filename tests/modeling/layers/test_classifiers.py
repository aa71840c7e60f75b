from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fastreid_lite.modeling.layers.classifiers import CLASSIFIER_REGISTRY, ArcSoftmax, CircleSoftmax, CosSoftmax, Linear

CASES = [
    "Linear_s1_m0",
    "Linear_s16_m0",
    "ArcSoftmax_s30_m0.5",
    "ArcSoftmax_s64_m0.35",
    "CosSoftmax_s30_m0.35",
    "CosSoftmax_s64_m0.2",
    "CircleSoftmax_s64_m0.35",
    "CircleSoftmax_s256_m0.25",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_a_classifier_layer_gives_the_scores_and_gradients_of_fast_reid(
    name: str, dtype: torch.dtype, golden: Path
) -> None:
    case = json.loads((golden / "classifiers.json").read_text())["cases"][name]
    numbers = np.load(golden / "classifiers.npz")
    double = dtype == torch.float64
    suffix = "_f64" if double else ""
    layer = CLASSIFIER_REGISTRY.get(case["layer"])(scale=case["scale"], margin=case["margin"])
    features = torch.from_numpy(numbers["in/features"]).to(dtype).requires_grad_()
    weight = torch.from_numpy(numbers["in/weight"]).to(dtype).requires_grad_()
    targets = torch.from_numpy(numbers["in/labels"])
    if layer.normalized:
        logits = F.linear(F.normalize(features), F.normalize(weight))
    else:
        logits = F.linear(features, weight)
    before = logits.detach().clone()
    scores = layer(logits, targets)
    assert torch.equal(before, logits)
    scores.backward(torch.from_numpy(numbers["in/upstream"]).to(dtype))

    tolerance = 1e-9 if double else 1e-5
    expected = numbers[f"{name}/train_logits{suffix}"]
    allowed = tolerance * (np.abs(expected).max() if double else case["scale"])
    assert np.abs(scores.detach().numpy() - expected).max() <= allowed
    plain = (logits * case["scale"]).detach().numpy()
    assert np.abs(plain - numbers[f"{name}/plain_logits{suffix}"]).max() <= allowed
    for found, key in ((features.grad, "grad_features"), (weight.grad, "grad_weight")):
        assert found is not None
        reference = numbers[f"{name}/{key}{suffix}"]
        assert np.abs(found.numpy() - reference).max() <= tolerance * np.abs(reference).max()
    if not double:
        absent = layer(logits.detach(), torch.from_numpy(numbers["in/labels_with_absent"]))
        assert np.abs(absent.numpy() - numbers[f"{name}/train_logits_with_absent"]).max() <= allowed


@pytest.mark.parametrize("layer", [ArcSoftmax, CosSoftmax, CircleSoftmax])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_feature_equal_or_opposite_to_its_class_weight_has_a_finite_gradient(layer: type, sign: float) -> None:
    feature = torch.tensor([[3.0, -4.0, 1.0]], requires_grad=True)
    weight = torch.tensor([[3.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
    cosines = F.linear(F.normalize(feature), F.normalize(sign * weight))
    scores = layer(scale=64.0, margin=0.5)(cosines, torch.tensor([0]))
    F.cross_entropy(scores, torch.tensor([0])).backward()
    assert bool(scores.isfinite().all())
    assert feature.grad is not None and bool(feature.grad.isfinite().all())


def test_a_cosine_rounded_above_one_gives_no_nan() -> None:
    cosines = torch.tensor([[1.0000001, 0.0]], requires_grad=True)
    scores = ArcSoftmax(scale=30.0, margin=0.5)(cosines, torch.tensor([0]))
    scores.sum().backward()
    assert bool(scores.isfinite().all())
    assert cosines.grad is not None and bool(cosines.grad.isfinite().all())


@pytest.mark.parametrize(("scale", "margin"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, float("inf"))])
def test_a_scale_or_margin_out_of_range_is_refused(scale: float, margin: float) -> None:
    with pytest.raises(ValueError, match=r"'Linear' needs a finite scale above 0 \(MODEL.HEADS.SCALE\)"):
        Linear(scale=scale, margin=margin)
