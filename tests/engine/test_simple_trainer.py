"""The usual step is a bare loop and nothing else; what it refuses; what it logs."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import published, weight_of, weight_trainer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        self.seen: list[float] = []

    def forward(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.layers(batch)
        losses = {"loss_a": out.square().mean(), "loss_b": out.abs().mean(), "loss_c": (out - 1).abs().max()}
        self.seen += [loss.item() for loss in losses.values()]
        return losses


def net_and_optimizer(kind: str) -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(3)
    net = Net()
    if kind == "adamw":
        return net, torch.optim.AdamW(net.parameters(), lr=0.01, fused=True)
    return net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)


DATA = [torch.randn(5, 6, generator=torch.Generator().manual_seed(number)) for number in range(7)]


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("mode", ["immediate", "deferred"])
def test_losses_and_weights_are_those_of_a_bare_loop_to_the_bit(kind: str, mode: str) -> None:
    bare, optimizer = net_and_optimizer(kind)
    for step in range(20):
        loss = sum(bare(DATA[step % 7]).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net, optimizer = net_and_optimizer(kind)
    SimpleTrainer(net, DATA, optimizer, nonfinite_mode=mode).train(0, 20)
    assert net.seen == bare.seen
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), bare.state_dict().values()))


def test_both_kinds_of_model_train() -> None:
    class Heads(nn.Linear):
        def forward(self, batch: torch.Tensor) -> Any:
            return {"outputs": super().forward(batch), "targets": batch.sum(1, keepdim=True)}

        def losses(self, outs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {"loss_fit": (outs["outputs"] - outs["targets"]).square().mean()}

    class Dict(nn.Linear):
        def forward(self, batch: torch.Tensor) -> Any:
            return {"loss_fit": (super().forward(batch) - batch.sum(1, keepdim=True)).square().mean()}

    weights = []
    for kind in (Heads, Dict):
        torch.manual_seed(0)
        model = kind(6, 1)
        SimpleTrainer(model, DATA, torch.optim.SGD(model.parameters(), lr=0.1)).train(0, 30)
        weights.append(model.weight.detach())
    assert torch.equal(*weights) and (weights[0] - 1).abs().max() < 0.05


def test_the_dict_of_losses_is_the_models_and_is_not_changed() -> None:
    given: list[dict[str, torch.Tensor]] = []
    copies: list[dict[str, float]] = []

    def losses(w: torch.Tensor, batch: Any) -> dict[str, torch.Tensor]:
        given.append({"b": w * 2 + 1, "a": w - 3})
        copies.append({name: value.item() for name, value in given[-1].items()})
        return given[-1]

    trainer = weight_trainer(losses, amp_enabled=True, amp_dtype="float16", accumulate_steps=2, epoch_length=3)
    trainer.train(0, 6)
    assert len(given) == 12
    for losses_given, before in zip(given, copies):
        found = {name: value.item() for name, value in losses_given.items()}
        assert list(losses_given) == list(before) and found == before


def test_total_and_terms_are_logged_unscaled() -> None:
    trainer = weight_trainer(lambda w, batch: {"loss_a": w + 2, "loss_b": w + 0.5}, rate=0.0)
    trainer.train(0, 4)
    assert published(trainer) == {"total_loss": 2.5, "loss_a": 2.0, "loss_b": 0.5}


def test_a_models_own_total_is_not_overwritten() -> None:
    trainer = weight_trainer(lambda w, batch: {"total_loss": w + 2}, rate=0.0)
    trainer.train(0, 1)
    assert published(trainer) == {"total_loss": 2.0}


def test_the_gradient_norm_is_logged_as_it_was_before_clipping() -> None:
    trainer = weight_trainer(lambda w, batch: 5 * w, clipper=GradientClipper("norm", 0.5))
    trainer.train(0, 1)
    assert published(trainer)["grad_norm"] == 5.0 and weight_of(trainer) == pytest.approx(-0.5)


def test_a_model_in_eval_mode_is_refused_with_words() -> None:
    trainer = weight_trainer(lambda w, batch: w, (1.0, 2.0))

    class Forgets(HookBase):
        def after_step(self) -> None:
            self.trainer.model.eval()

    trainer.register_hooks([Forgets()])
    with pytest.raises(RuntimeError, match=r"\[SimpleTrainer\] model was changed to eval mode!"):
        trainer.train(0, 2)
    assert trainer.iter == 1


def test_a_model_is_put_into_training_mode() -> None:
    model = nn.Linear(1, 1).eval()
    SimpleTrainer(model, [0], torch.optim.SGD(model.parameters(), lr=1.0))
    assert model.training


def test_a_model_without_parameters_is_refused() -> None:
    other = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="ReLU has no parameter: there is nothing to train"):
        SimpleTrainer(nn.ReLU(), [0], torch.optim.SGD(other.parameters(), lr=1.0))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda w, b: {}, ValueError, "Weight returned an empty dict of losses"),
        (lambda w, b: {"features": w, "ids": [1]}, TypeError, "returned 'ids' of type list.*needs a method losses"),
        (lambda w, b: w.expand(3), ValueError, r"'loss' has shape \(3,\)"),
        (lambda w, b: w.detach(), ValueError, "no loss of Weight depends on a parameter that trains"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_at_the_first_step(
    answer: Any, error: type[Exception], words: str
) -> None:
    trainer = weight_trainer(answer, start=1.0)
    with pytest.raises(error, match=words):
        trainer.train(0, 3)
    assert trainer.iter == 0 and trainer.outcome == "failed" and weight_of(trainer) == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nonfinite_policy": "ignore"}, "NONFINITE.POLICY is 'ignore', expected one of raise, skip"),
        ({"nonfinite_mode": "later"}, "NONFINITE.MODE is 'later', expected one of auto, immediate, deferred"),
        ({"amp_enabled": True, "amp_dtype": "fp8"}, "AMP.DTYPE is 'fp8', expected one of auto, float16, bfloat16"),
        ({"accumulate_steps": 0}, "accumulate_steps is 0, expected"),
    ],
)
def test_bad_options_are_refused_before_the_first_step(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        weight_trainer(lambda w, batch: w, **options)


def test_gradients_that_stood_there_before_the_run_do_not_count() -> None:
    trainer = weight_trainer(lambda w, batch: w)
    next(trainer.model.parameters()).grad = torch.tensor(100.0)
    trainer.train(0, 1)
    assert weight_of(trainer) == -1.0


def test_a_step_that_failed_half_way_leaves_nothing_to_the_next_run() -> None:
    fails = [False, True]

    def losses(w: torch.Tensor, batch: Any) -> torch.Tensor:
        if fails and fails.pop(0):
            raise OSError("disk")
        return 2 * w + 7

    trainer = weight_trainer(losses, (0, 0), accumulate_steps=2)
    with pytest.raises(OSError, match="disk"):
        trainer.train(0, 1)
    trainer.train(0, 1)
    assert weight_of(trainer) == -2.0 and published(trainer)["loss"] == 7.0


def test_after_backward_may_change_gradients_before_they_are_clipped() -> None:
    trainer = weight_trainer(lambda w, batch: w, clipper=GradientClipper("value", 3.0))
    seen: list[float] = []

    def times_ten(trainer: Any) -> None:
        parameter = next(trainer.model.parameters())
        seen.append(float(parameter.grad))
        parameter.grad.mul_(10)

    trainer.register_hooks([hooks.CallbackHook(after_backward=times_ten)])
    trainer.train(0, 2)
    assert seen == [1.0, 1.0] and weight_of(trainer) == -6.0


def test_a_step_on_the_host_reads_each_loss_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = weight_trainer(lambda w, batch: {"a": w * 2, "b": w * 3})
    reads: list[int] = []
    item = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: (reads.append(1), item(self))[1])
    trainer.train(0, 1)
    # The two terms, their total, and the flag.
    assert len(reads) == 4


def test_the_model_may_be_compiled(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    model = torch.compile(Net(), backend="eager")
    with caplog.at_level(logging.WARNING):
        trainer = SimpleTrainer(model, DATA, torch.optim.SGD(model.parameters(), lr=0.1))
        trainer.train(0, 2)
    state = copy.deepcopy(trainer.state_dict())
    assert all(not name.startswith("_orig_mod.") for name in state["model"])
    trainer.load_state_dict(state)
