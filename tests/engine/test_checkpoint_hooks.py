"""Checkpoints: when they are written, what they are called, what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.checkpoint import Checkpointer, load_checkpoint
from fastreid_lite.engine.hooks import BestCheckpointer, EvalHook, PeriodicCheckpointer
from fastreid_lite.engine.hooks.checkpoint import CheckpointHook
from fastreid_lite.engine.triggers import At
from tests.engine.toys import CountingTrainer, PositionedLoader, toy_trainer


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.pth"))


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        (4, ["model_final", "model_iter_0000003", "model_iter_0000007"]),
        (5, ["model_0000", "model_final"]),
        (0, ["model_final"]),
        (-1, []),
        ((1, "epoch"), ["model_0000", "model_final"]),
        ((-1, "epoch"), []),
        (At(2), ["model_final", "model_iter_0000001"]),
    ],
)
def test_files_are_named_by_epoch_or_step_and_the_end(tmp_path: Path, period: Any, expected: list[str]) -> None:
    trainer = CountingTrainer(PositionedLoader(5))
    trainer.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), period)])
    trainer.train(0, 9)
    assert names(tmp_path) == expected


def test_a_checkpoint_of_iteration_i_means_that_step_i_is_done(tmp_path: Path) -> None:
    trainer = toy_trainer()
    trainer.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), 5)])
    trainer.train(0, 10)
    state = load_checkpoint(tmp_path / "model_0000.pth")
    assert state["iteration"] == 4
    again = toy_trainer(seed=1)
    again.load_state_dict(state)
    again.train(again.iter, 10)
    assert again.start_iter == 5
    final = load_checkpoint(tmp_path / "model_final.pth")
    for name, value in again.model.state_dict().items():
        assert final["model"][name].equal(value)


def test_a_second_run_of_the_same_trainer_is_saved_too(tmp_path: Path) -> None:
    trainer = toy_trainer()
    trainer.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), 2)])
    trainer.train(0, 4)
    trainer.train(0, 4)
    for name in ("model_final", "model_iter_0000003"):
        state = load_checkpoint(tmp_path / f"{name}.pth")
        assert state["model"]["linear.weight"].equal(trainer.model.linear.weight)  # type: ignore[union-attr]


def test_the_best_is_kept_apart_and_the_pointer_does_not_name_it(tmp_path: Path) -> None:
    scores = [1.0, float("nan"), 3.0, 3.0, 2.0]
    trainer = CountingTrainer(PositionedLoader(9))
    best = BestCheckpointer(Checkpointer(tmp_path), "score")
    trainer.register_hooks([EvalHook(1, lambda: {"score": scores[trainer.iter]}), best])
    trainer.train(0, 5)
    assert load_checkpoint(tmp_path / "model_best.pth")["iteration"] == 2
    assert (best.iteration, best.trigger.best) == (2, 3.0)
    assert names(tmp_path) == ["model_best"]
    assert not (tmp_path / "last_checkpoint").exists()


def test_a_worse_value_after_a_resume_does_not_write_over_the_best(tmp_path: Path) -> None:
    def make(scores: list[float]) -> CountingTrainer:
        own, checkpointer = CountingTrainer(PositionedLoader(9)), Checkpointer(tmp_path)
        own.register_hooks(
            [
                EvalHook(1, lambda: {"score": scores[own.iter]}),
                BestCheckpointer(checkpointer, "score"),
                PeriodicCheckpointer(checkpointer, 3),
            ]
        )
        return own

    make([1.0, 9.0, 3.0]).train(0, 3)
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    again = make([0.0, 0.0, 0.0, 5.0, 10.0, 7.0])
    again.load_state_dict(choice.state)
    again.train(again.iter, 4)
    assert load_checkpoint(tmp_path / "model_best.pth")["iteration"] == 1
    again.train(again.iter, 6)
    assert load_checkpoint(tmp_path / "model_best.pth")["iteration"] == 4


def test_an_error_while_writing_is_raised_as_it_is(tmp_path: Path) -> None:
    class Full(Checkpointer):
        def save(self, *args: Any, **kwargs: Any) -> Path:
            raise OSError("no space left on device")

    trainer = CountingTrainer()
    trainer.register_hooks([PeriodicCheckpointer(Full(tmp_path), 2)])
    with pytest.raises(OSError, match="no space left on device"):
        trainer.train(0, 4)
    assert trainer.outcome == "failed"


def test_saving_changes_nothing_that_the_next_step_reads(tmp_path: Path) -> None:
    import torch

    def run(period: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        trainer = toy_trainer(dropout=0.5)
        trainer.register_hooks([PeriodicCheckpointer(Checkpointer(tmp_path), period)])
        trainer.train(0, 6)
        return {name: value.clone() for name, value in trainer.model.state_dict().items()}

    often, never = run(1), run(-1)
    assert all(often[name].equal(never[name]) for name in never)


def test_a_bare_checkpoint_hook_rescues_nothing(tmp_path: Path) -> None:
    CheckpointHook(Checkpointer(tmp_path)).rescue(CountingTrainer())
    assert names(tmp_path) == []
