"""Deferred: the host does not wait for the device, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import NonFiniteError
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import INF, NAN, Weight, weight_of, weight_trainer


def a_and_b(w: torch.Tensor, batch: Any) -> dict[str, torch.Tensor]:
    return {"a": w * 0 + batch[0], "b": w + batch[1]}


def test_deferred_the_first_bad_step_is_named_with_terms_rate_and_images_at_the_next_period(tmp_path: Path) -> None:
    batches = [
        {"value": (1.0, NAN if number == 5 else INF if number == 7 else 1.0), "img_paths": [f"{number}.jpg"]}
        for number in range(30)
    ]
    trainer = weight_trainer(
        lambda w, b: a_and_b(w, b["value"]), batches, rate=0.5, fused=True, momentum=0.9, nonfinite_mode="deferred"
    )
    reference = weight_trainer(lambda w, b: a_and_b(w, (1.0, 1.0)), rate=0.5, fused=True, momentum=0.9)
    reference.train(0, 5)
    trainer.register_hooks([hooks.PeriodicWriter([], 10)])
    trainer.agreement.next_step = 10**9
    with pytest.raises(
        NonFiniteError, match=r"at iteration=5! losses: a = 1, b = nan; lr: 0\.5; images: 5\.jpg\. The update"
    ):
        trainer.train(0, 30)
    # Step 5 and all after it were no-ops, momentum included; the error came with the log line.
    assert trainer.iter == 9 and weight_of(trainer) == weight_of(reference)
    buffers = [next(iter(t.optimizer.state.values()))["momentum_buffer"] for t in (trainer, reference)]
    assert torch.equal(*buffers)


def test_deferred_fused_adam_counts_no_step_that_it_did_not_make() -> None:
    model = Weight(lambda w, b: w + b)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    trainer = SimpleTrainer(model, [0.0, NAN, 0.0], optimizer, nonfinite_mode="deferred", nonfinite_policy="skip")
    trainer.train(0, 3)
    assert float(optimizer.state[model.w]["step"]) == 2.0 and torch.isfinite(model.w)


def test_deferred_saving_reads_the_flag_first() -> None:
    trainer = weight_trainer(lambda w, b: w + b, (0.0, NAN, 0.0, 0.0), nonfinite_mode="deferred", fused=True)

    saves = hooks.CallbackHook(trigger=(3, "iteration"), at_boundary=lambda trainer: trainer.state_dict())
    trainer.register_hooks([saves])
    with pytest.raises(NonFiniteError, match="at iteration=1!"):
        trainer.train(0, 10)
    assert trainer.iter == 2


def test_deferred_nobody_who_asks_is_needed_at_the_end() -> None:
    trainer = weight_trainer(lambda w, b: w + b, (0.0, NAN, 0.0), nonfinite_mode="deferred", fused=True)
    with pytest.raises(NonFiniteError, match="at iteration=1!"):
        trainer.train(0, 3)
    assert trainer.outcome == "failed" and weight_of(trainer) == -1.0


def test_deferred_nobody_who_asks_is_needed_in_an_endless_run() -> None:
    trainer = weight_trainer(
        lambda w, b: w + b, [NAN] + [0.0] * 9, epoch_length=10**6, nonfinite_mode="deferred", fused=True
    )
    with pytest.raises(NonFiniteError, match="at iteration=0!"):
        trainer.train(0, 10**5)
    assert trainer.iter <= 1024


def test_deferred_skipped_steps_of_a_long_run_are_all_counted() -> None:
    trainer = weight_trainer(
        lambda w, b: w + b,
        [NAN] + [0.0] * 9,
        epoch_length=10**6,
        nonfinite_mode="deferred",
        nonfinite_policy="skip",
        fused=True,
    )
    trainer.train(0, 2000)
    trainer.flagged()
    assert trainer.guard.skipped == 200


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_first_step_that_is_skipped_leaves_no_garbage_in_the_momentum(momentum: float) -> None:
    def run(batches: tuple[float, ...]) -> float:
        trainer = weight_trainer(
            lambda w, b: w + b,
            batches,
            nonfinite_mode="deferred",
            nonfinite_policy="skip",
            fused=True,
            momentum=momentum,
        )
        trainer.train(0, len(batches))
        return weight_of(trainer)

    assert run((NAN, INF, 0.0, 0.0)) == run((0.0, 0.0))


def test_fused_sgd_with_dampening_is_read_until_a_step_was_made() -> None:
    model = Weight(lambda w, b: w + b)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, dampening=0.5, fused=True)
    trainer = SimpleTrainer(model, [NAN, 0.0, 0.0, NAN], optimizer, nonfinite_mode="deferred", nonfinite_policy="skip")
    trainer.train(0, 4)
    assert weight_of(trainer) == pytest.approx(-2.4) and not trainer.flagged() and trainer.guard.skipped == 2


def test_a_state_that_switches_fusing_off_does_not_fool_the_guard() -> None:
    plain = weight_trainer(lambda w, b: w + b, nonfinite_mode="deferred")
    plain.train(0, 1)
    trainer = weight_trainer(lambda w, b: w + b, (0.0, NAN), nonfinite_mode="deferred", fused=True)
    trainer.load_state_dict(plain.state_dict())
    with pytest.raises(NonFiniteError, match="at iteration=2!"):
        trainer.train(1, 3)
    assert weight_of(trainer) == -2.0


class Reads:
    """Counts what makes the host wait for a device."""

    def __init__(self) -> None:
        self.number = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    counter = Reads()
    for name in ("item", "tolist", "__bool__", "__float__", "__int__", "cpu", "numpy"):
        original = getattr(torch.Tensor, name)

        def counted(self: torch.Tensor, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            counter.number += 1
            return original(self, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, counted)
    yield counter


@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize("clipper", [None, GradientClipper("norm", 1.0), GradientClipper("value", 1.0)])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_deferred_the_guard_reads_nothing_between_periods(
    policy: str, clipper: Any, scaled: bool, kind: str, reads: Reads
) -> None:
    model = Weight(lambda w, b: {"a": w * 2, "b": w * 3})
    rate = torch.tensor(0.1) if kind == "adam" else 0.1
    optimizer: torch.optim.Optimizer
    if kind == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, fused=True)
    trainer = SimpleTrainer(
        model,
        [0],
        optimizer,
        scaled,
        amp_dtype="float16",
        clipper=clipper,
        nonfinite_mode="deferred",
        nonfinite_policy=policy,
    )
    put: list[int] = []
    trainer.storage.put_scalar = lambda *a, **k: put.append(1)  # type: ignore[method-assign, assignment]
    trainer.guard.prepare()
    # On the host the trainer reads losses for the log, which costs nothing there: taken off.
    trainer.optimizer.zero_grad()
    for step in range(3):
        trainer.iter = step
        before = reads.number
        trainer.run_step()
        assert reads.number - before == 3, "the two terms and the total, on the host"


@pytest.mark.parametrize("number", [1, 3])
def test_deferred_without_a_fused_optimizer_the_flag_is_read_once_a_step(number: int, reads: Reads) -> None:
    trainer = weight_trainer(lambda w, b: {"a": w * 2, "b": w * 3}, nonfinite_mode="deferred")
    for step in range(number):
        trainer.iter = step
        before = reads.number
        trainer.run_step()
        assert reads.number - before == 3 + 1
