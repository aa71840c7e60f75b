"""What is said of a step that is not finite, and fused SGD's buffers."""

from __future__ import annotations

import math

import pytest
import torch

from fastreid_lite.engine.finite import Evidence, NonFiniteError, Ring, explain, raise_everywhere, zero_momentum


def test_every_term_is_named_with_rates_and_images() -> None:
    evidence = Evidence(3, [("a", torch.tensor(1.0)), ("b", torch.tensor(math.nan))], [0.1, torch.tensor(0.5), 0.1])
    evidence.add_batch({"img_paths": [f"{number}.jpg" for number in range(6)]})
    evidence.add_batch(torch.zeros(3))
    said = explain(evidence, ["never shown"])
    assert said == "losses: a = 1, b = nan; lr: 0.1, 0.5; images: 0.jpg, 1.jpg, 2.jpg, 3.jpg and 2 more"


def test_gradients_are_named_where_the_losses_are_finite() -> None:
    said = explain(Evidence(3, [("a", 1.0)]), ["p", "q", "r", "s", "t"], [torch.tensor(math.inf)])
    assert said == "losses: a = 1; gradient of: p, q, r and 2 more"


def test_a_norm_that_overflows_by_itself_is_named() -> None:
    said = explain(Evidence(3, [("a", 1.0)]), [], [torch.tensor(math.inf)])
    assert said == "losses: a = 1; each gradient is finite, but not their norm: inf"


def test_of_several_micro_batches_the_bad_value_is_shown() -> None:
    assert Evidence(0, [("a", 1.0), ("a", math.inf), ("a", 2.0)]).values() == {"a": math.inf}
    assert Evidence(0, [("a", 1.0), ("a", 2.0)]).values() == {"a": 2.0}


def test_the_ring_finds_the_first_bad_step_and_forgets_old_ones() -> None:
    ring = Ring(size=3)
    for step in range(5):
        ring.steps.append(Evidence(step, [("a", 1.0)], found=torch.zeros(())))
    assert [evidence.iteration for evidence in ring.steps] == [2, 3, 4] and ring.first_bad() is None
    ring.steps.append(Evidence(5, [("a", 1.0)], found=torch.ones(())))
    ring.steps.append(Evidence(6, [("a", math.nan)]))
    first = ring.first_bad()
    assert first is not None and first.iteration == 5


def test_the_error_is_a_floating_point_error_with_the_step() -> None:
    with pytest.raises(FloatingPointError, match=r"^Loss became infinite or NaN at iteration=7! a = nan\. The update"):
        raise_everywhere(7, "a = nan", gradient=False)
    with pytest.raises(NonFiniteError, match="^Gradient became infinite or NaN at iteration=7! p"):
        raise_everywhere(7, "p", gradient=True)


def sgd(**options: float) -> torch.optim.SGD:
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=1.0, **options)  # type: ignore[arg-type]


def test_fused_momentum_begins_at_zero_and_steps_are_the_same() -> None:
    runs = []
    for prepared in (True, False):
        optimizer = sgd(momentum=0.9, fused=True)
        if prepared:
            assert zero_momentum(optimizer) is False
        parameter = optimizer.param_groups[0]["params"][0]
        for step in range(3):
            parameter.grad = torch.full((3,), 0.1 + step)
            optimizer.step()
        runs.append(parameter.detach().clone())
    assert torch.equal(*runs)


def test_buffers_that_are_there_stay_and_others_need_none() -> None:
    for optimizer in (sgd(momentum=0.9), sgd(fused=True), torch.optim.Adam([torch.nn.Parameter(torch.ones(1))])):
        assert zero_momentum(optimizer) is False and not optimizer.state
    optimizer = sgd(momentum=0.9, fused=True)
    parameter = optimizer.param_groups[0]["params"][0]
    optimizer.state[parameter]["momentum_buffer"] = torch.full((3,), 7.0)
    zero_momentum(optimizer)
    assert optimizer.state[parameter]["momentum_buffer"].tolist() == [7.0] * 3


def test_dampening_is_told_since_a_buffer_at_zero_would_change_its_first_step() -> None:
    optimizer = sgd(momentum=0.9, dampening=0.5, fused=True)
    assert zero_momentum(optimizer) is True and not optimizer.state
