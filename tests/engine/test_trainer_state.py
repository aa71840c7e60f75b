"""What a checkpoint holds, and what is said of one that is not this run's."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.checkpoint import Checkpointer, CheckpointError, to_plain
from fastreid_lite.engine import hooks
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from fastreid_lite.engine.triggers import every
from fastreid_lite.storage.writers import JSONWriter
from tests.engine.step_toys import differences, from_bytes, to_bytes
from tests.engine.toys import PositionedLoader, toy_trainer


class Stateful(HookBase):
    def __init__(self, name: str, *, triggered: bool = False) -> None:
        self.name = name
        self.seen = 0
        self.trigger = every(2) if triggered else None

    def after_step(self) -> None:
        self.seen += 1

    def __call__(self, trainer: Any) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def saved(trainer: Any, steps: int = 3) -> dict[str, Any]:
    trainer.train(0, steps)
    return from_bytes(to_bytes(to_plain(trainer.state_dict())))


def test_a_state_loads_under_torchs_defaults_and_comes_back_the_same() -> None:
    state = saved(toy_trainer())
    fresh = toy_trainer(seed=1)
    fresh.load_state_dict(state)
    assert fresh.iter == 3
    assert not differences(state["model"], dict(fresh.model.state_dict()))
    assert not differences(state["optimizer"], fresh.optimizer.state_dict())


def test_a_checkpoint_of_a_run_with_everything_loads_under_torchs_defaults(tmp_path: Path) -> None:
    trainer = toy_trainer(amp_enabled=True, amp_dtype="float16")
    checkpointer = Checkpointer(tmp_path)
    trainer.register_hooks(
        [
            hooks.IterationTimer(6),
            hooks.EvalHook(2, lambda: {"set": {"metric": 0.5}}),
            hooks.PeriodicCheckpointer(checkpointer, 2),
            hooks.BestCheckpointer(checkpointer, "set/metric"),
            hooks.PeriodicWriter([JSONWriter(tmp_path / "metrics.json")], 3),
        ]
    )
    trainer.train(0, 5)
    for path in tmp_path.glob("*.pth"):
        assert torch.load(path)["iteration"] in (1, 3, 4)


def test_counters_and_random_states_of_every_process_are_there() -> None:
    state = saved(toy_trainer(), 7)
    assert (state["iteration"], state["epoch"]) == (6, 1)
    inner = state["trainer"]
    assert (inner["epoch_step"], inner["epoch_length"], inner["max_iter"]) == (2, 5, 7)
    assert len(inner["ranks"]) == 1 and set(inner["ranks"][0]["random"]) >= {"python", "numpy", "torch"}
    assert inner["environment"]["threads"] == str(torch.get_num_threads())


def test_weights_of_another_model_are_refused_by_name_and_nothing_changes() -> None:
    state = saved(toy_trainer())
    trainer = toy_trainer(seed=1)
    trainer.model.linear = nn.Linear(4, 3)
    trainer.model.extra = nn.Linear(1, 1, bias=False)
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    with pytest.raises(
        CheckpointError,
        match=r"not of this ToyModel: extra\.weight is missing, linear\.weight has shape \(2, 4\), here \(3, 4\), "
        r"linear\.bias has shape .*Resume with the config",
    ):
        trainer.load_state_dict(state)
    assert not differences(before, dict(trainer.model.state_dict())) and trainer.iter == 0


def test_weights_that_the_model_does_not_have_are_named() -> None:
    state = saved(toy_trainer())
    state["model"].update({f"head{number}.weight": torch.zeros(1) for number in range(6)})
    with pytest.raises(CheckpointError, match=r"head0\.weight is not in this model, .*, and 2 more\. Resume"):
        toy_trainer().load_state_dict(state)


def other_optimizer(kind: Any, **options: Any) -> SimpleTrainer:
    model = toy_trainer().model
    return SimpleTrainer(model, PositionedLoader(), kind(model.parameters(), lr=0.1, **options))


def test_another_kind_of_optimizer_is_refused_with_words() -> None:
    state = saved(toy_trainer())
    with pytest.raises(CheckpointError, match="another optimizer than this Adam: it has dampening, .* lacks amsgrad"):
        other_optimizer(torch.optim.Adam).load_state_dict(state)


def test_other_groups_are_refused_with_words() -> None:
    state = saved(toy_trainer())
    trainer = toy_trainer()
    optimizer = torch.optim.SGD([{"params": [p]} for p in trainer.model.parameters()], lr=0.1)
    trainer = SimpleTrainer(trainer.model, PositionedLoader(), optimizer)
    with pytest.raises(CheckpointError, match=r"groups of \[4\] parameters, this SGD of \[1, 1, 1, 1\]"):
        trainer.load_state_dict(state)


def test_an_option_that_only_one_version_of_torch_has_is_no_reason() -> None:
    state = saved(toy_trainer())
    del state["optimizer"]["param_groups"][0]["maximize"]
    toy_trainer().load_state_dict(state)


def test_hooks_that_are_gone_are_named_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    trainer = toy_trainer()
    trainer.register_hooks([Stateful("kept"), Stateful("gone")])
    state = saved(trainer)
    fresh = toy_trainer()
    kept, new = Stateful("kept"), Stateful("new")
    fresh.register_hooks([kept, new])
    fresh.load_state_dict(state)
    with caplog.at_level(logging.WARNING):
        fresh.train(fresh.iter, 5)
    assert (kept.seen, new.seen) == (5, 2)
    assert "the state of a hook 'gone' that this run does not have: left out" in caplog.text
    assert "'kept'" not in caplog.text


def test_another_number_of_processes_is_said(caplog: pytest.LogCaptureFixture) -> None:
    state = saved(toy_trainer())
    state["trainer"]["ranks"] *= 3
    fresh = toy_trainer()
    fresh.load_state_dict(state)
    with caplog.at_level(logging.WARNING):
        fresh.train(3, 4)
    assert "this run has 1 processes, the one that it resumes had 3: the order of samples is kept" in caplog.text


def test_another_environment_is_said_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    state = saved(toy_trainer())
    state["trainer"]["environment"].update(torch="1.0", threads="64")
    fresh = toy_trainer()
    fresh.load_state_dict(state)
    with caplog.at_level(logging.WARNING):
        fresh.train(3, 4)
    said = [record.message for record in caplog.records if "environment" in record.message]
    assert len(said) == 1 and "threads 64 -> " in said[0] and "torch 1.0 -> " in said[0]


def test_nothing_is_said_where_nothing_is_different(caplog: pytest.LogCaptureFixture) -> None:
    state = saved(toy_trainer())
    fresh = toy_trainer()
    fresh.load_state_dict(state)
    with caplog.at_level(logging.WARNING):
        fresh.train(3, 6)
    assert not caplog.records


def test_an_epoch_length_that_the_loader_does_not_tell_comes_back() -> None:
    class NoLength:
        def __iter__(self) -> Any:
            return iter(torch.ones(4, 6, 4).unbind())

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            pass

    state = saved(toy_trainer(NoLength()), 6)
    fresh = toy_trainer(NoLength())
    fresh.load_state_dict(state)
    lengths: list[Any] = []
    fresh.register_hooks([hooks.CallbackHook(before_step=lambda trainer: lengths.append(trainer.epoch_length))])
    fresh.train(6, 7)
    assert lengths == [4]


def test_the_size_of_a_checkpoint_does_not_grow_with_the_run(tmp_path: Path) -> None:
    class Talks(HookBase):
        def after_step(self) -> None:
            grown = torch.ones((), requires_grad=True) * self.trainer.iter
            self.trainer.storage.put_scalars(**{f"value{number}": grown for number in range(10)})

    trainer = toy_trainer()
    sizes: list[int] = []
    checkpointer = Checkpointer(tmp_path, keep=2)
    trainer.register_hooks(
        [
            Talks(),
            hooks.IterationTimer(6),
            hooks.EvalHook(7, lambda: {"set": {"metric": float(trainer.iter)}}),
            hooks.PeriodicCheckpointer(checkpointer, 100),
            hooks.BestCheckpointer(checkpointer, "set/metric"),
            hooks.PeriodicWriter([JSONWriter(tmp_path / "metrics.json")], 7),
            hooks.CallbackHook(
                trigger=(160, "iteration"), at_boundary=lambda t: sizes.append(len(to_bytes(t.state_dict())))
            ),
        ]
    )
    trainer.train(0, 800)
    # Until then the windows fill up; later a larger number may take a byte more.
    settled = sizes[1:]
    assert len(settled) == 4 and max(settled) - min(settled) < 512
