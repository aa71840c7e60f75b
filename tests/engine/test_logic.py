"""What a model's answer may be, and what is said of one that cannot be trained on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.engine.logic import check_losses, loss_function, total_loss

BATCH = torch.arange(8.0).reshape(4, 2)


class Answers(nn.Linear):
    def __init__(self, answer: Any = None) -> None:
        super().__init__(2, 1)
        self.answer = answer

    def forward(self, batch: torch.Tensor) -> Any:
        out = super().forward(batch).square()
        return self.answer(out) if self.answer else out.mean()


class Heads(Answers):
    """Returns heads, and has losses(outs), as old re-id models do."""

    def forward(self, batch: torch.Tensor) -> Any:
        return {"outputs": super().forward(batch), "targets": batch[:, 0]}

    def losses(self, outs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"loss_cls": outs["outputs"].mean() + outs["targets"].sum() * 0}


class Inner(Answers):
    """Returns losses, and has a method of the same name that it calls itself, as newer re-id models do."""

    def forward(self, batch: torch.Tensor) -> Any:
        return self.losses(super().forward(batch), batch[:, 0])

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss_inner": outputs.mean() + targets.sum() * 0}


def test_a_single_loss_gets_a_name() -> None:
    model = Answers()
    assert list(loss_function(model)(BATCH)) == ["loss"]


def test_a_dict_of_losses_is_handed_on_as_it_is() -> None:
    made: dict[str, torch.Tensor] = {}
    model = Answers(lambda out: made)
    assert loss_function(model)(BATCH) is made


def test_heads_go_through_the_models_losses() -> None:
    assert list(loss_function(Heads())(BATCH)) == ["loss_cls"]


def test_losses_with_an_option_is_still_a_function_of_the_heads() -> None:
    class Option(Heads):
        def losses(self, outs: Any, weight: float = 2.0) -> dict[str, torch.Tensor]:
            return {"loss_option": outs["outputs"].mean() * weight}

    assert list(loss_function(Option())(BATCH)) == ["loss_option"]


def test_losses_of_two_arguments_is_the_models_own_business() -> None:
    assert list(loss_function(Inner())(BATCH)) == ["loss_inner"]


def test_a_module_called_losses_is_no_method() -> None:
    class Held(Answers):
        def __init__(self) -> None:
            super().__init__(lambda out: {"loss_held": out.mean()})
            self.losses = nn.ModuleDict()

    assert list(loss_function(Held())(BATCH)) == ["loss_held"]


def test_wrapped_models_are_looked_into() -> None:
    assert list(loss_function(nn.DataParallel(Heads()))(BATCH)) == ["loss_cls"]
    assert list(loss_function(nn.DataParallel(Inner()))(BATCH)) == ["loss_inner"]


def test_the_total_is_the_sum_and_the_terms_stay() -> None:
    terms = {name: torch.tensor(value) for name, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))}
    before = copy.deepcopy(terms)
    assert total_loss(terms) == (terms["a"] + terms["b"]) + terms["c"]
    assert list(terms) == list(before) and all(torch.equal(terms[name], before[name]) for name in terms)


def test_an_empty_total_says_so() -> None:
    with pytest.raises(ValueError, match="empty dict of losses: at least one"):
        total_loss({})


@pytest.mark.parametrize(
    ("losses", "error", "words"),
    [
        ({}, ValueError, "Answers returned an empty dict of losses"),
        ({"loss": None}, TypeError, "Answers returned 'loss' of type NoneType: .* needs a method losses"),
        ({"a": 1.0}, TypeError, "returned 'a' of type float"),
        ({"loss": [torch.zeros(())]}, TypeError, "of type list"),
        ({"a": torch.zeros(3, requires_grad=True)}, ValueError, r"'a' has shape \(3,\): a scalar was expected"),
        ({"a": torch.zeros(()), "b": torch.zeros(())}, ValueError, r"depends on a parameter that trains \(a, b\)"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(losses: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_losses(losses, Answers())


def test_a_constant_beside_a_loss_is_fine() -> None:
    check_losses({"a": torch.zeros(1, requires_grad=True), "margin": torch.tensor(2)}, Answers())
