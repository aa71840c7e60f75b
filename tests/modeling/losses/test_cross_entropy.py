from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from fastreid_lite.modeling.losses.cross_entropy import CrossEntropyLoss, cross_entropy


def naive(logits: torch.Tensor, targets: torch.Tensor, eps: float) -> float:
    total, counted = 0.0, 0
    for row, target in zip(logits.tolist(), targets.tolist(), strict=True):
        log_sum = math.log(sum(math.exp(value) for value in row))
        shares = [1 - eps if column == target else eps / (len(row) - 1) for column in range(len(row))]
        loss = -sum(share * (value - log_sum) for share, value in zip(shares, row, strict=True))
        total, counted = total + loss, counted + (loss != 0)
    return total / counted


def test_smoothing_gives_epsilon_to_the_other_classes_together() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5]], dtype=torch.float64)
    assert round(float(cross_entropy(logits, torch.tensor([0]), eps=0.1)), 4) == 0.7619
    # torch spreads it over all classes, the true one too.
    same = cross_entropy(logits, torch.tensor([0]), eps=0.1 * 4 / 5)
    assert torch.isclose(same, F.cross_entropy(logits, torch.tensor([0]), label_smoothing=0.1))


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5])
def test_it_equals_a_loop_over_rows_and_classes(eps: float) -> None:
    logits, targets = torch.randn(9, 6, dtype=torch.float64), torch.randint(6, (9,))
    assert math.isclose(float(cross_entropy(logits, targets, eps=eps)), naive(logits, targets, eps), rel_tol=1e-12)


def test_without_smoothing_it_is_plain_cross_entropy() -> None:
    logits, targets = torch.randn(9, 6), torch.randint(6, (9,))
    assert torch.allclose(cross_entropy(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize("eps", [0.0, 0.1, -1.0])
def test_a_single_class_gives_zero_and_a_zero_gradient(eps: float) -> None:
    logits = torch.randn(4, 1, requires_grad=True)
    loss = cross_entropy(logits, torch.zeros(4, dtype=torch.int64), eps=eps)
    loss.backward()
    assert float(loss.detach()) == 0
    assert logits.grad is not None and not logits.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scores_give_a_float32_loss(dtype: torch.dtype) -> None:
    logits, targets = torch.randn(8, 5).to(dtype), torch.randint(5, (8,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = cross_entropy(logits, targets, eps=0.1)
    assert loss.dtype == torch.float32
    assert torch.allclose(loss, cross_entropy(logits.float(), targets, eps=0.1))


def test_the_factor_is_inside() -> None:
    outputs, targets = {"cls_outputs": torch.randn(4, 3)}, torch.tensor([0, 1, 2, 0])
    once, twice = CrossEntropyLoss()(outputs, targets), CrossEntropyLoss(scale=2.0)(outputs, targets)
    assert torch.allclose(2 * once["loss_cls"], twice["loss_cls"])


def test_a_head_without_scores_is_named() -> None:
    with pytest.raises(KeyError, match=r"needs the output 'cls_outputs' .*gives \['features'\].*NUM_CLASSES 0"):
        CrossEntropyLoss()({"features": torch.zeros(1, 2)}, torch.zeros(1, dtype=torch.int64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 1.0}, "CE.EPSILON must be below 1 .* got 1.0"),
        ({"eps": float("nan")}, "CE.EPSILON must be below 1"),
        ({"alpha": 1.5}, "CE.ALPHA must be from 0 to 1, got 1.5"),
        ({"scale": -1.0}, "CE.SCALE must be a finite number of 0 or more, got -1.0"),
    ],
)
def test_a_setting_out_of_range_is_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrossEntropyLoss(**arguments)
