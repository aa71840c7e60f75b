"""Triplet, circle and cosface losses where batches are odd and numbers extreme."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from fastreid_lite.modeling.losses.circle import CircleLoss, circle
from fastreid_lite.modeling.losses.cosface import Cosface, cosface
from fastreid_lite.modeling.losses.triplet import TripletLoss, euclidean_distances, triplet, weighted

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **{
        f"triplet margin={margin} norm={norm} hard={hard}": partial(
            triplet, margin=margin, norm_feat=norm, hard_mining=hard
        )
        for margin in (0.3, 0.0)
        for norm in (True, False)
        for hard in (True, False)
    },
    "circle": circle,
    "cosface": cosface,
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def value_and_gradient(loss: Callable[[Tensor, Tensor], Tensor], features: Tensor, targets: list[int]) -> Tensor:
    features.requires_grad_()
    value = loss(features, torch.tensor(targets))
    value.backward()
    assert bool(value.isfinite()) and float(value.detach()) < 1e5
    assert features.grad is not None and bool(features.grad.isfinite().all())
    return value.detach()


@every_loss
def test_equal_rows_give_finite_gradients(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    value_and_gradient(loss, torch.ones(8, 5), [0, 0, 0, 0, 1, 1, 1, 1])


@every_loss
@pytest.mark.parametrize("targets", [[0, 0, 0, 0], [0, 1, 2, 3], [7]], ids=["one identity", "all differ", "one image"])
def test_a_batch_without_a_triplet_gives_zero_and_a_zero_gradient(
    loss: Callable[[Tensor, Tensor], Tensor], targets: list[int]
) -> None:
    features = 0.01 * torch.randn(len(targets), 5)
    assert float(value_and_gradient(loss, features, targets)) == 0
    assert features.grad is not None and not features.grad.any()


def test_no_active_triplet_gives_zero() -> None:
    features = torch.tensor([[0.0], [0.1], [9.0], [9.1]])
    assert float(value_and_gradient(triplet, features, [0, 0, 1, 1])) == 0


def test_hard_mining_equals_a_loop() -> None:
    features, targets = torch.randn(10, 4, dtype=torch.float64), [0, 0, 0, 1, 1, 2, 2, 2, 2, 1]
    rows = []
    for i in range(10):
        distances = [math.dist(features[i].tolist(), features[j].tolist()) for j in range(10)]
        positive = max(d for j, d in enumerate(distances) if targets[j] == targets[i])
        negative = min(d for j, d in enumerate(distances) if targets[j] != targets[i])
        rows.append(max(positive - negative + 0.3, 0))
    assert math.isclose(float(triplet(features, torch.tensor(targets))), sum(rows) / 10, rel_tol=1e-9)


def test_distances_equal_a_loop() -> None:
    features = torch.randn(6, 3, dtype=torch.float64)
    expected = [[max(math.dist(a.tolist(), b.tolist()), 1e-6) for b in features] for a in features]
    assert torch.allclose(euclidean_distances(features), torch.tensor(expected, dtype=torch.float64), atol=1e-9)


@pytest.mark.parametrize("far", [15.0, 30.0, 300.0])
def test_without_softening_the_weighted_mean_of_far_images_is_their_distance(far: float) -> None:
    same = torch.eye(3, dtype=torch.bool)
    distances = torch.full((3, 3), far).masked_fill(same, 1e-6).requires_grad_()
    _, negative = weighted(distances, same, softening=0.0)
    assert torch.allclose(negative, torch.tensor(far))
    _, softened = weighted(distances, same)
    softened.sum().backward()
    assert distances.grad is not None and bool(distances.grad.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_loss
def test_half_precision_features_give_a_float32_loss(
    loss: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype
) -> None:
    features = (0.3 * torch.randn(16, 32)).to(dtype)
    targets = torch.arange(16) // 4
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(features, targets)
    assert value.dtype == torch.float32
    assert torch.isclose(value.double(), loss(features.double(), targets), rtol=1e-3)


@pytest.mark.parametrize("gamma", [80.0, 128.0, 256.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("loss", [circle, cosface])
def test_large_factors_neither_overflow_nor_vanish(
    loss: Callable[..., Tensor], dtype: torch.dtype, gamma: float
) -> None:
    features = F.normalize(torch.randn(256, 512)).to(dtype).requires_grad_()
    targets = torch.randint(10, (256,))
    value = loss(features, targets, margin=0.25, gamma=gamma)
    value.backward()
    exact = loss(features.detach().double(), targets, margin=0.25, gamma=gamma)
    assert float(value.detach()) > 0 and torch.isclose(value.double(), exact, rtol=1e-2)
    assert features.grad is not None and bool(features.grad.isfinite().all()) and bool(features.grad.any())


@pytest.mark.parametrize("loss", [TripletLoss, CircleLoss, Cosface])
def test_the_factor_is_inside_and_the_name_is_fast_reids(loss: type) -> None:
    outputs, targets = {"features": torch.randn(8, 4)}, torch.arange(8) // 2
    (name, once), (_, twice) = (next(iter(loss(scale=s)(outputs, targets).items())) for s in (1.0, 2.0))
    assert name == {TripletLoss: "loss_triplet", CircleLoss: "loss_circle", Cosface: "loss_cosface"}[loss]
    assert torch.allclose(2 * once, twice)


@pytest.mark.parametrize(
    ("loss", "argument", "key"),
    [
        (TripletLoss, "margin", "TRI.MARGIN"),
        (CircleLoss, "gamma", "CIRCLE.GAMMA"),
        (Cosface, "margin", "COSFACE.MARGIN"),
    ],
)
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_setting_out_of_range_is_refused(loss: type, argument: str, key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"MODEL.LOSSES.{key} must be a finite number of 0 or more, got {value}"):
        loss(**{argument: value})
