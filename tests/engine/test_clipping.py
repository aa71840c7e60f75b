"""Clipping, against loops over the numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from fastreid_lite.engine.clipping import GradientClipper

GRADIENTS = [[[3.0, -4.0], [12.0]], [[0.5, -0.25]]]


def optimizer(gradients: list[list[list[float]]] = GRADIENTS) -> torch.optim.Optimizer:
    groups = []
    for group in gradients:
        parameters = [torch.nn.Parameter(torch.zeros(len(numbers))) for numbers in group]
        for parameter, numbers in zip(parameters, group):
            parameter.grad = torch.tensor(numbers)
        groups.append({"params": [*parameters, torch.nn.Parameter(torch.zeros(1))]})
    return torch.optim.SGD(groups, lr=1.0)


def clip(clipper: GradientClipper, over: torch.optim.Optimizer) -> tuple[list[float], list[list[list[float]]]]:
    norms = clipper.norms(over)
    clipper.clip(over, norms)
    left = [[p.grad.tolist() for p in group["params"] if p.grad is not None] for group in over.param_groups]
    return [float(norm) for norm in norms], left


def naive_norm(numbers: list[float], p: float) -> float:
    return max(abs(x) for x in numbers) if math.isinf(p) else sum(abs(x) ** p for x in numbers) ** (1 / p)


@pytest.mark.parametrize("scope", ["global", "group"])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("limit", [0.3, 2.0, 100.0])
def test_a_joint_norm_is_brought_down_to_the_limit(scope: str, p: float, limit: float) -> None:
    norms, left = clip(GradientClipper("norm", limit, norm_type=p, scope=scope), optimizer())
    together = [GRADIENTS] if scope == "global" else [[group] for group in GRADIENTS]
    clipped = [left] if scope == "global" else [[group] for group in left]
    assert len(norms) == len(together)
    for norm, before, after in zip(norms, together, clipped):
        flat = [x for group in before for numbers in group for x in numbers]
        assert norm == pytest.approx(naive_norm(flat, p), rel=1e-6)
        factor = min(1.0, limit / naive_norm(flat, p))
        assert [x for group in after for numbers in group for x in numbers] == pytest.approx(
            [x * factor for x in flat], rel=1e-5
        )


@pytest.mark.parametrize("scope", ["global", "group"])
def test_values_are_cut_one_by_one(scope: str) -> None:
    norms, left = clip(GradientClipper("value", 0.4, scope=scope), optimizer())
    assert norms == []
    cut = [[[min(max(x, -0.4), 0.4) for x in numbers] for numbers in group] for group in GRADIENTS]
    for group, expected in zip(left, cut):
        for numbers, wanted in zip(group, expected):
            assert numbers == pytest.approx(wanted)


def test_measuring_changes_nothing() -> None:
    over = optimizer()
    GradientClipper("norm", 0.1).norms(over)
    assert [[p.grad.tolist() for p in g["params"][:-1]] for g in over.param_groups] == GRADIENTS


def test_a_group_without_gradients_is_left_out_and_no_gradient_at_all_is_fine() -> None:
    over = optimizer([GRADIENTS[0], []])
    assert len(GradientClipper("norm", 1.0, scope="group").norms(over)) == 1
    over.zero_grad()
    for clipper in (GradientClipper("norm", 1.0), GradientClipper("value", 1.0)):
        clipper.clip(over, clipper.norms(over))
    assert GradientClipper("norm", 1.0).norms(over) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "max", "limit": 1.0}, "CLIP_TYPE is 'max', expected one of norm, value"),
        ({"kind": "norm", "limit": 1.0, "scope": "all"}, "SCOPE is 'all', expected one of global, group"),
        ({"kind": "norm", "limit": 0.0}, r"CLIP_VALUE is 0.0, expected a number > 0"),
        ({"kind": "norm", "limit": math.nan}, "CLIP_VALUE is nan"),
        ({"kind": "norm", "limit": 1.0, "norm_type": -1.0}, "NORM_TYPE is -1.0, expected a number > 0"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GradientClipper(arguments.pop("kind"), arguments.pop("limit"), **arguments)
