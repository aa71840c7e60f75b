"""Stop when nothing gets better."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import EarlyStopping, EvalHook, PeriodicCheckpointer
from tests.engine.toys import CountingTrainer


def make(scores: list[float], **options: object) -> tuple[CountingTrainer, list[int]]:
    trainer, evaluated = CountingTrainer(), []

    def evaluate() -> dict[str, float]:
        evaluated.append(trainer.iter + 1)
        return {"score": scores[trainer.iter // 2]}

    trainer.register_hooks([EvalHook(2, evaluate), EarlyStopping("score", **options)])  # type: ignore[arg-type]
    return trainer, evaluated


def test_it_ends_the_run_finished_at_the_boundary_of_the_value_that_was_one_too_many() -> None:
    trainer, evaluated = make([1, 3, 2, 3, 9], patience=2)
    trainer.train(0, 100)
    assert trainer.iter == 8
    assert evaluated == [2, 4, 6, 8]
    assert trainer.outcome == "finished"
    assert trainer.stop_reason == "score has not improved on 3.0 for 2 evaluations"


def test_smaller_can_be_better_and_small_changes_can_be_none() -> None:
    trainer, _ = make([3, 2, 1.95, 9], patience=1, mode="min", min_change=0.1)
    trainer.train(0, 100)
    assert trainer.iter == 6


def test_it_goes_on_counting_when_resumed(tmp_path: Path) -> None:
    scores = [5.0, 4, 3, 2, 1, 0]
    trainer, _ = make(scores, patience=4)
    trainer.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), 4)])
    trainer.train(0, 6)
    choice = Checkpointer(tmp_path).resume_from(tmp_path / "model_iter_0000003.pth")
    again, evaluated = make(scores, patience=4)
    again.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), 4)])
    again.load_state_dict(choice.state)
    again.train(again.iter, 100)
    assert evaluated == [4, 6, 8, 10], "the turn of step 4 was owed"
    assert again.iter == 10


def test_a_name_that_is_never_published_is_said(caplog: pytest.LogCaptureFixture) -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([EvalHook(2, lambda: {"Toy": {"mAP": 1.0}}), EarlyStopping("Toy/map", 1)])
    trainer.train(0, 4)
    assert "EarlyStopping waited for 'Toy/map', which was never published; published: Toy/mAP" in caplog.text
