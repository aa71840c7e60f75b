"""Nothing that is not finite reaches the weights; what is known of it is said; the host does not wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import NonFiniteError
from fastreid_lite.engine.guard import DeferredGuard, ImmediateGuard
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import INF, NAN, published, weight_of, weight_trainer
from tests.engine.test_amp import Multiply

MODES = [("immediate", False), ("deferred", False), ("deferred", True)]
modes = pytest.mark.parametrize(("mode", "fused"), MODES)


def a_and_b(w: torch.Tensor, batch: Any) -> dict[str, torch.Tensor]:
    return {"a": w * 0 + batch[0], "b": w + batch[1]}


def with_gradient(w: torch.Tensor, factor: float) -> torch.Tensor:
    """A loss that is finite, whose gradient is ``factor``."""
    return Multiply.apply(w.sum(), factor)


@modes
@pytest.mark.parametrize(
    ("bad", "words"),
    [((1.0, NAN), "a = 1, b = nan"), ((INF, 1.0), "a = inf, b = -2"), ((INF, -INF), "a = inf, b = -inf")],
)
def test_both_terms_are_named_before_anything_is_spoiled(
    mode: str, fused: bool, bad: tuple[float, float], words: str, tmp_path: Path
) -> None:
    batches = [(1.0, 1.0)] * 3 + [bad] + [(1.0, 1.0)] * 3
    trainer = weight_trainer(a_and_b, batches, nonfinite_mode=mode, fused=fused)
    trainer.register_hooks([hooks.PeriodicCheckpointer(Checkpointer(tmp_path), 1)])
    with pytest.raises(NonFiniteError, match=rf"^Loss became infinite or NaN at iteration=3! losses: {words}; lr: 1"):
        trainer.train(0, 7)
    assert weight_of(trainer) == -3.0 and trainer.iter == 3
    steps = [torch.load(path)["iteration"] for path in tmp_path.glob("*.pth")]
    assert sorted(steps) == [0, 1, 2]


@modes
@pytest.mark.parametrize("factor", [NAN, INF, -INF])
@pytest.mark.parametrize(
    "clipper", [None, GradientClipper("norm", 1.0), GradientClipper("norm", 1.0, scope="group"), "value"]
)
def test_a_bad_gradient_of_a_finite_loss_is_found_whatever_clips_it(
    mode: str, fused: bool, factor: float, clipper: Any
) -> None:
    clipper = GradientClipper("value", 1.0) if clipper == "value" else clipper
    trainer = weight_trainer(with_gradient, (1.0, factor, 1.0), nonfinite_mode=mode, fused=fused, clipper=clipper)
    with pytest.raises(
        NonFiniteError, match=r"^Gradient became infinite or NaN at iteration=1! losses: loss = -(1|0.99)"
    ):
        trainer.train(0, 3)
    assert weight_of(trainer) == pytest.approx(-1.0)


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_the_parameter_whose_gradient_is_bad_is_named_and_no_other(mode: str) -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.good, self.head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)

        def forward(self, batch: Any) -> torch.Tensor:
            out = self.head(self.good(batch["images"]))
            return out.mean() + Multiply.apply(self.head.bias, NAN).sum() * 0

    model = Two()
    trainer = SimpleTrainer(
        model,
        [{"images": torch.ones(1, 2), "img_paths": ["0001_c1.jpg"]}],
        torch.optim.SGD(model.parameters(), lr=0.5),
        clipper=GradientClipper("norm", 1.0),
        nonfinite_mode=mode,
    )
    with pytest.raises(NonFiniteError, match=r"gradient of: head\.bias; lr: 0\.5; images: 0001_c1\.jpg\. The update"):
        trainer.train(0, 1)


@modes
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_finite_gradients_whose_norm_overflows_make_no_step(mode: str, fused: bool, policy: str) -> None:
    trainer = weight_trainer(
        with_gradient,
        (3e38, 1.0),
        size=8,
        nonfinite_mode=mode,
        nonfinite_policy=policy,
        fused=fused,
        momentum=0.9,
        clipper=GradientClipper("norm", 1.0),
    )
    if policy == "raise":
        words = (
            "at iteration=0! .*each gradient is finite, but not their norm: inf"
            if mode == "immediate"
            else "at iteration=0!"
        )
        with pytest.raises(NonFiniteError, match=words):
            trainer.train(0, 2)
        assert weight_of(trainer) == 0.0
    else:
        trainer.train(0, 2)
        assert weight_of(trainer) == pytest.approx(-(8**-0.5))


@modes
def test_under_skip_bad_steps_are_left_out_counted_and_not_logged(mode: str, fused: bool) -> None:
    batches = [(0.0, 1.0), (NAN, 1.0), (0.0, INF), (0.0, 1.0)]
    trainer = weight_trainer(a_and_b, batches, nonfinite_mode=mode, nonfinite_policy="skip", fused=fused, momentum=0.5)
    trainer.train(0, 4)
    # Momentum does not move on in a step that is left out: -1, then -(1 + 0.5).
    assert weight_of(trainer) == -2.5
    assert not trainer.flagged() and trainer.guard.skipped == 2
    if not fused:
        assert published(trainer)["a"] == 0.0


@modes
def test_skipped_steps_are_counted_on_after_a_resume(mode: str, fused: bool) -> None:
    def make() -> SimpleTrainer:
        return weight_trainer(lambda w, b: w + b, (NAN, 0.0), nonfinite_mode=mode, nonfinite_policy="skip", fused=fused)

    trainer = make()
    trainer.train(0, 2)
    state = trainer.state_dict()
    fresh = make()
    fresh.load_state_dict(state)
    fresh.flagged()
    assert fresh.guard.skipped == 1


@modes
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_bad_loss_whose_gradient_autograd_hides_makes_no_step(mode: str, fused: bool, policy: str) -> None:
    def hidden(w: torch.Tensor, batch: float) -> dict[str, torch.Tensor]:
        # Behind a ReLU that is off the gradient is 0, not 0 times NaN.
        return {"hinge": torch.relu(w - 100), "other": w.new_tensor(batch), "w": torch.relu(w + 50) * (batch == 0)}

    trainer = weight_trainer(
        hidden, (0.0, NAN, 0.0), nonfinite_mode=mode, nonfinite_policy=policy, fused=fused, momentum=0.5
    )
    if policy == "raise":
        with pytest.raises(NonFiniteError, match="at iteration=1! .*other = nan"):
            trainer.train(0, 3)
        assert weight_of(trainer) == -1.0
    else:
        trainer.train(0, 3)
        assert weight_of(trainer) == -2.5 and not trainer.flagged() and trainer.guard.skipped == 1


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_sparse_and_mixed_gradients_are_looked_into(mode: str) -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(5, 2, sparse=True)
            self.wide = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
            self.narrow = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))

        def forward(self, batch: tuple[str, float]) -> torch.Tensor:
            parts = {
                "table": self.table(torch.tensor([1, 1, 3])).sum(),
                "wide": self.wide.sum().float(),
                "narrow": self.narrow.sum().float(),
            }
            return sum(Multiply.apply(p, batch[1]) if n == batch[0] else p for n, p in parts.items())  # type: ignore

    for name, said in (("table", r"table\.weight"), ("wide", "wide"), ("narrow", "narrow")):
        model = Mixed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = SimpleTrainer(model, [(name, 1.0), (name, NAN)], optimizer, nonfinite_mode=mode)
        with pytest.raises(NonFiniteError, match=rf"at iteration=1! .*gradient of: {said}; lr"):
            trainer.train(0, 2)
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_a_bad_loss_over_a_sparse_table_is_skipped() -> None:
    model = torch.nn.Embedding(5, 2, sparse=True)

    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = model

        def forward(self, factor: float) -> torch.Tensor:
            return self.table(torch.tensor([1, 3])).sum() * factor

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = SimpleTrainer(Sum(), [1.0, NAN], optimizer, nonfinite_policy="skip")
    trainer.train(0, 2)
    assert trainer.guard.skipped == 1 and torch.isfinite(model.weight).all()


@modes
def test_a_sum_that_overflows_is_found_though_each_term_is_finite(mode: str, fused: bool) -> None:
    trainer = weight_trainer(a_and_b, [(3e38, 3e38)], nonfinite_mode=mode, fused=fused)
    with pytest.raises(NonFiniteError, match=r"at iteration=0! losses: a = 3e\+38, b = 3e\+38"):
        trainer.train(0, 1)
    assert weight_of(trainer) == 0.0


@modes
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_one_bad_micro_batch_spoils_its_step_alone(mode: str, fused: bool, position: int, policy: str) -> None:
    batches = [0.0] * 3 + [NAN if number == position else 0.0 for number in range(3)] + [0.0] * 3
    trainer = weight_trainer(
        lambda w, b: w + b,
        batches,
        nonfinite_mode=mode,
        nonfinite_policy=policy,
        fused=fused,
        accumulate_steps=3,
    )
    if policy == "raise":
        with pytest.raises(NonFiniteError, match="at iteration=1! losses: loss = nan"):
            trainer.train(0, 3)
        assert weight_of(trainer) == -1.0
    else:
        trainer.train(0, 3)
        assert weight_of(trainer) == -2.0 and not trainer.flagged() and trainer.guard.skipped == 1


def test_the_default_on_the_host_is_immediate() -> None:
    assert isinstance(weight_trainer(lambda w, b: w).guard, ImmediateGuard)
    assert isinstance(weight_trainer(lambda w, b: w, nonfinite_mode="deferred").guard, DeferredGuard)
