"""Low precision: which scaler, what it skips, what of it is saved."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import NonFiniteError
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import NAN, from_bytes, published, to_bytes, weight_of, weight_trainer


def fp16(losses: Any, loader: Any = (0.0,), *, scale: float = 1024.0, **options: Any) -> SimpleTrainer:
    trainer = weight_trainer(losses, loader, amp_enabled=True, amp_dtype="float16", **options)
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return trainer


class Multiply(torch.autograd.Function):
    """The identity, whose gradient is multiplied."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient * ctx.factor, None


def test_the_scaler_is_always_there_to_ask_for() -> None:
    assert weight_trainer(lambda w, b: w).scaler is None
    assert weight_trainer(lambda w, b: w, amp_enabled=True).scaler is None
    assert weight_trainer(lambda w, b: w, amp_enabled=True, amp_dtype="bfloat16").scaler is None
    assert isinstance(
        weight_trainer(lambda w, b: w, amp_enabled=True, amp_dtype="float16").scaler, torch.amp.GradScaler
    )


@pytest.mark.parametrize(
    ("name", "dtype"), [("auto", torch.bfloat16), ("bfloat16", torch.bfloat16), ("float16", torch.float16)]
)
def test_the_model_runs_in_the_low_precision_that_was_asked_for(name: str, dtype: torch.dtype) -> None:
    seen: list[torch.dtype] = []

    class Net(nn.Linear):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            out = super().forward(batch)
            seen.append(out.dtype)
            return out.float().square().mean()

    model = Net(3, 2)
    before = model.weight.detach().clone()
    data = [torch.ones(4, 3)]
    SimpleTrainer(model, data, torch.optim.SGD(model.parameters(), lr=0.1), True, amp_dtype=name).train(0, 2)
    assert seen == [dtype, dtype] and model.weight.dtype == torch.float32
    assert not torch.equal(before, model.weight)


def test_losses_of_heads_are_computed_under_autocast_too() -> None:
    seen: list[torch.dtype] = []

    class Heads(nn.Linear):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return super().forward(batch)

        def losses(self, outs: torch.Tensor) -> torch.Tensor:
            seen.append((outs @ outs.T).dtype)
            return outs.float().mean()

    model = Heads(3, 2)
    SimpleTrainer(model, [torch.ones(4, 3)], torch.optim.SGD(model.parameters(), lr=0.1), True).train(0, 1)
    assert seen == [torch.bfloat16]


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("fused", [False, True])
def test_gradients_are_unscaled_before_they_are_clipped(mode: str, fused: bool) -> None:
    trainer = fp16(lambda w, b: w, clipper=GradientClipper("norm", 1.0), nonfinite_mode=mode, fused=fused)
    trainer.train(0, 1)
    assert weight_of(trainer) == pytest.approx(-1.0, rel=1e-5)
    assert published(trainer) == {"total_loss": 0.0, "loss": 0.0, "grad_norm": 1.0}


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("clipper", [None, GradientClipper("norm", 1.0), GradientClipper("value", 1.0)])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_gradient_that_overflows_is_the_scalers_skip_and_no_error(
    mode: str, fused: bool, clipper: Any, momentum: float
) -> None:
    trainer = fp16(
        lambda w, factor: Multiply.apply(w, factor),
        (NAN, 1.0),
        clipper=clipper,
        nonfinite_mode=mode,
        fused=fused,
        momentum=momentum,
        start=1.0,
    )
    trainer.train(0, 2)
    assert trainer.scaler is not None and trainer.scaler.get_scale() == 512.0
    assert weight_of(trainer) == pytest.approx(0.0, abs=1e-5) and trainer.guard.skipped == 0


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_loss_that_is_not_finite_is_an_error_also_with_a_scaler(mode: str, fused: bool) -> None:
    trainer = fp16(
        lambda w, b: {"a": w + 1, "b": w * b}, (0.0, 0.0, NAN, 0.0), nonfinite_mode=mode, fused=fused, start=1.0
    )
    with pytest.raises(NonFiniteError, match=r"at iteration=2! losses: a = 0, b = nan; lr: 1"):
        trainer.train(0, 4)
    assert weight_of(trainer) == -1.0


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_under_skip_a_loss_that_is_not_finite_is_counted_and_not_logged_where_it_is_known(mode: str) -> None:
    trainer = fp16(lambda w, b: w + b, (0.0, NAN, 0.0), nonfinite_mode=mode, nonfinite_policy="skip", start=1.0)
    trainer.train(0, 3)
    assert weight_of(trainer) == -1.0 and not trainer.flagged() and trainer.guard.skipped == 1
    if mode == "immediate":
        assert published(trainer)["loss"] == pytest.approx(0.5)


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_norm_that_overflows_by_itself_skips_the_step(mode: str, fused: bool) -> None:
    trainer = fp16(
        lambda w, factor: Multiply.apply(w.sum(), factor),
        (3e38, 1.0),
        size=8,
        scale=1.0,
        clipper=GradientClipper("norm", 1.0),
        nonfinite_mode=mode,
        fused=fused,
        momentum=0.9,
    )
    trainer.train(0, 1)
    state = next(iter(trainer.optimizer.state.values()), {})
    assert published(trainer)["grad_norm"] == float("inf")
    assert weight_of(trainer) == 0.0 and not torch.any(state.get("momentum_buffer", torch.zeros(8)))


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_fused_sgd_with_dampening_survives_a_first_step_that_is_skipped(mode: str) -> None:
    trainer = fp16(lambda w, factor: Multiply.apply(w, factor), (NAN, 1.0), nonfinite_mode=mode)
    model = trainer.model
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, dampening=0.5, fused=True)
    trainer = SimpleTrainer(model, [NAN, 1.0, 1.0], optimizer, True, amp_dtype="float16", nonfinite_mode=mode)
    trainer.train(0, 3)
    # The first gradient goes in undamped: -1; then 0.9 * 1 + 0.5 * 1.
    assert weight_of(trainer) == pytest.approx(-1.0 - 1.4, rel=1e-5)


def test_scale_and_growth_counter_come_back() -> None:
    trainer = fp16(lambda w, factor: Multiply.apply(w, factor), (NAN, 1.0, 1.0), scale=256.0)
    trainer.train(0, 3)
    file = to_bytes(trainer.state_dict())
    fresh = fp16(lambda w, factor: Multiply.apply(w, factor), (NAN, 1.0, 1.0), scale=256.0)
    fresh.load_state_dict(from_bytes(file))
    assert fresh.scaler is not None and trainer.scaler is not None
    assert fresh.scaler.get_scale() == 128.0 and fresh.scaler.state_dict()["_growth_tracker"] == 2
    assert fresh.scaler.state_dict() == trainer.scaler.state_dict()


def test_a_checkpoint_without_a_scaler_loads_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    trainer = fp16(lambda w, b: w)
    trainer.train(0, 1)
    state = from_bytes(to_bytes(trainer.state_dict()))
    del state["scaler"]
    fresh = fp16(lambda w, b: w, scale=64.0)
    with caplog.at_level(logging.WARNING):
        fresh.load_state_dict(state)
    assert "no state of a gradient scaler: it starts at its default scale" in caplog.text
    fresh.train(1, 2)
    assert weight_of(fresh) == -2.0


def test_a_scaler_that_this_run_does_not_use_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    trainer = fp16(lambda w, b: w)
    trainer.train(0, 1)
    fresh = weight_trainer(lambda w, b: w)
    with caplog.at_level(logging.WARNING):
        fresh.load_state_dict(from_bytes(to_bytes(trainer.state_dict())))
    assert "a gradient scaler, which this run does not use: left out" in caplog.text
