"""Evaluation in the midst of training."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.engine.hooks import EvalHook
from fastreid_lite.engine.hooks.evaluation import plain
from fastreid_lite.engine.triggers import At
from fastreid_lite.utils.nesting import flatten
from tests.engine.toys import CountingTrainer, toy_trainer


@pytest.mark.parametrize(
    ("period", "expected"),
    [(3, [3, 6, 8]), (4, [4, 8]), (0, [8]), (-1, []), ((1, "epoch"), [5, 8]), (At(2), [2, 8]), ((-1, "epoch"), [])],
)
def test_it_evaluates_every_period_and_at_the_end_once(period: Any, expected: list[int]) -> None:
    trainer, evaluated = CountingTrainer([1, 2, 3, 4, 5]), []
    trainer.register_hooks([EvalHook(period, lambda: evaluated.append(trainer.iter + 1))])
    trainer.train(0, 8)
    assert evaluated == expected


def test_results_are_published_at_once_under_their_step() -> None:
    trainer = CountingTrainer()
    hook = EvalHook(2, lambda: {"Toy": {"mAP": 40.0 + trainer.iter, "Rank-1": torch.tensor(90.0)}})
    trainer.register_hooks([hook])
    trainer.train(0, 3)
    assert trainer.storage.history("Toy/mAP") == [(41.0, 1), (42.0, 2)]
    assert trainer.storage.history("Toy/Rank-1") == [(90.0, 1), (90.0, 2)]
    assert hook.results is not None
    assert hook.results["Toy"]["mAP"] == 42.0


def test_a_second_run_of_the_same_trainer_is_evaluated_too() -> None:
    trainer, evaluated = CountingTrainer(), []
    trainer.register_hooks([EvalHook(0, lambda: evaluated.append(trainer.iter))])
    trainer.train(0, 3)
    trainer.train(0, 3)
    assert evaluated == [2, 2]


def test_a_function_that_draws_from_the_global_generators_changes_no_step() -> None:
    def draws() -> dict[str, float]:
        return {"score": random.random() + float(np.random.rand()) + float(torch.rand(()))}

    def run(*hooks: Any) -> dict[str, torch.Tensor]:
        torch.manual_seed(3)
        trainer = toy_trainer(dropout=0.5)
        trainer.register_hooks(hooks)
        trainer.train(0, 6)
        return {name: value.clone() for name, value in trainer.model.state_dict().items()}

    plain, observed = run(), run(EvalHook(1, draws))
    assert all(plain[name].equal(observed[name]) for name in plain)


def test_results_become_plain_floats_and_what_is_no_number_is_refused() -> None:
    numbers = plain({"a": {"b": {"c": 1}}, "d": np.float64(2)})
    assert flatten(numbers) == {"a/b/c": 1.0, "d": 2.0}
    assert type(numbers["d"]) is float
    with pytest.raises(TypeError, match="the evaluation returned Toy/mAP = 'good': a number, or a dict of numbers"):
        plain({"Toy": {"mAP": "good"}})


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="EvalHook needs a function that returns numbers by name, got 3"):
        EvalHook(1, 3)  # type: ignore[arg-type]
