"""The loop that evaluates: an observer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from fastreid_lite.engine import inference_on_dataset
from fastreid_lite.engine.hooks import CallbackHook, EvalHook
from tests.engine.toys import PositionedLoader, ToyModel, toy_batch, toy_trainer


class Mean:
    """The mean of what the model gives."""

    def __init__(self, *, fails: str = "") -> None:
        self.fails = fails

    def reset(self) -> None:
        self.outputs: list[torch.Tensor] = []

    def process(self, batch: Any, outputs: Any) -> None:
        if self.fails == "process":
            raise ArithmeticError("in process")
        assert not torch.is_grad_enabled()
        self.outputs.append(outputs["loss_square"])

    def evaluate(self) -> dict[str, float]:
        if self.fails == "evaluate":
            raise ArithmeticError("in evaluate")
        return {"mean": float(torch.stack(self.outputs).mean()), "batches": float(len(self.outputs))}


BATCHES = [toy_batch(7, batch) for batch in range(3)]


def test_it_gives_the_numbers_of_the_model_in_eval_mode() -> None:
    model = ToyModel(dropout=0.5)
    found = inference_on_dataset(model, BATCHES, Mean())
    model.eval()
    with torch.no_grad():
        expected = torch.stack([model(batch)["loss_square"] for batch in BATCHES]).mean()
    assert found == {"mean": float(expected), "batches": 3.0}


@pytest.mark.parametrize("fails", ["", "process", "evaluate"])
def test_modes_gradients_and_buffers_are_as_before_however_it_ends(fails: str) -> None:
    model = ToyModel()
    model.train()
    model.norm.eval()  # frozen batch norm stays frozen
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    if fails:
        with pytest.raises(ArithmeticError, match=f"in {fails}"):
            inference_on_dataset(model, BATCHES, Mean(fails=fails))
    else:
        inference_on_dataset(model, BATCHES, Mean())
    assert (model.training, model.norm.training, model.linear.training) == (True, False, True)
    assert torch.is_grad_enabled()
    assert all(value.equal(buffers[name]) for name, value in model.named_buffers())


def test_a_loader_of_torch_that_draws_its_seed_from_the_global_generator_moves_nothing() -> None:
    loader = DataLoader(torch.arange(24.0).reshape(6, 4), batch_size=2)  # type: ignore[arg-type]
    torch.manual_seed(5)
    before = torch.get_rng_state()
    inference_on_dataset(ToyModel().eval(), loader, Mean())
    torch.manual_seed(5)
    assert before.equal(torch.get_rng_state())
    model = ToyModel()
    state = torch.get_rng_state()
    inference_on_dataset(model, loader, Mean())
    assert state.equal(torch.get_rng_state())


def test_training_with_evaluations_gives_the_same_bytes_as_without() -> None:
    def run(evaluates: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(1)
        trainer = toy_trainer(dropout=0.5)
        hook = EvalHook(1, lambda: inference_on_dataset(trainer.model, DataLoader(BATCHES, batch_size=None), Mean()))
        trainer.register_hooks([hook if evaluates else None])
        trainer.train(0, 6)
        return {name: value.clone() for name, value in trainer.model.state_dict().items()}

    plain, observed = run(False), run(True)
    assert all(plain[name].equal(observed[name]) for name in plain)


def test_a_hook_that_leaves_the_model_in_eval_mode_is_named_at_the_next_step() -> None:
    trainer = toy_trainer(PositionedLoader())
    trainer.register_hooks([CallbackHook(after_step=lambda t: t.model.eval())])
    with pytest.raises(RuntimeError, match=r"\[SimpleTrainer\] model was changed to eval mode!.*inference_on_dataset"):
        trainer.train(0, 3)
    assert trainer.iter == 1


def test_an_evaluator_that_raises_leaves_the_model_in_training_mode() -> None:
    trainer = toy_trainer()
    trainer.register_hooks([EvalHook(2, lambda: inference_on_dataset(trainer.model, BATCHES, Mean(fails="process")))])
    with pytest.raises(ArithmeticError, match="in process"):
        trainer.train(0, 6)
    assert trainer.model.training
    assert all(module.training for module in trainer.model.modules())


def test_an_evaluator_with_nothing_to_say_and_an_empty_share_are_fine() -> None:
    class Quiet(Mean):
        def evaluate(self) -> None:  # type: ignore[override]
            return None

    assert inference_on_dataset(ToyModel(), [], Quiet()) == {}
    assert inference_on_dataset(nn.Identity(), [torch.ones(2)], Quiet.__new__(_Ignores)) == {}


class _Ignores:
    def reset(self) -> None:
        pass

    def process(self, batch: Any, outputs: Any) -> None:
        pass

    def evaluate(self) -> None:
        return None
