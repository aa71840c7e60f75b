from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.config import ConfigError
from fastreid_lite.engine.defaults import DefaultTrainer, default_setup
from fastreid_lite.engine.hooks import CallbackHook
from fastreid_lite.utils.logger import close_logger
from tests.processes import run_processes
from tests.toy_run import toy_config, write_toy_market


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"))


@pytest.fixture(autouse=True)
def _loggers() -> Any:
    yield
    close_logger()


def make(market: Path, output: Path, *, resume: bool | str = False, **more: Any) -> DefaultTrainer:
    cfg = default_setup(toy_config(market, output, **more), resume=resume)
    trainer = DefaultTrainer(cfg)
    trainer.resume_or_load(resume)
    return trainer


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "metrics.json").read_text().splitlines()]


def test_a_run_leaves_weights_logs_results_and_a_curve(market: Path, tmp_path: Path) -> None:
    trainer = make(market, tmp_path / "run")
    results = trainer.train()
    found = {path.name for path in (tmp_path / "run").iterdir()}
    assert found >= {
        "config.yaml",
        "log.txt",
        "metrics.json",
        "results.json",
        "model_final.pth",
        "model_best.pth",
        "model_iter_0000004.pth",
        "model_iter_0000009.pth",
        "last_checkpoint",
        "learning_curve.png",
    }
    written = json.loads((tmp_path / "run" / "results.json").read_text())
    assert written["outcome"] == "finished" and written["iteration"] == 9
    assert written["results"] == results
    assert set(results["Market1501"]) == {"Rank-1", "Rank-5", "Rank-10", "mAP", "mINP", "metric"}


def test_the_final_evaluation_stands_in_the_log_under_the_last_iteration(market: Path, tmp_path: Path) -> None:
    trainer = make(market, tmp_path, TEST__EVAL_PERIOD_ITERS=0, SOLVER__MAX_ITER=7)
    results = trainer.train()
    last = [line for line in lines(tmp_path) if "Market1501/mAP" in line]
    assert [line["iteration"] for line in last] == [6]
    assert last[0]["Market1501/mAP"] == results["Market1501"]["mAP"]


def test_a_log_line_has_the_promised_numbers(market: Path, tmp_path: Path) -> None:
    make(market, tmp_path).train()
    first = lines(tmp_path)[0]
    promised = {"total_loss", "loss_cls", "loss_triplet", "lr", "time", "data_time", "hook_time"}
    assert first["iteration"] == 2
    assert set(first) >= promised | {"images_per_second", "eta_seconds"}


def test_an_evaluation_that_raises_at_the_end_finds_the_final_weights_on_disk(market: Path, tmp_path: Path) -> None:
    trainer = make(market, tmp_path, SOLVER__CHECKPOINT_PERIOD_ITERS=100, TEST__EVAL_PERIOD_ITERS=0)
    trainer._evaluation._function = lambda: 1 / 0  # type: ignore[assignment,return-value]
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert trainer.outcome == "failed"
    again = make(market, tmp_path, resume=True, SOLVER__CHECKPOINT_PERIOD_ITERS=100, TEST__EVAL_PERIOD_ITERS=0)
    steps: list[int] = []
    again.register_hooks([CallbackHook(name="count", before_step=lambda t: steps.append(t.iter))])
    results = again.train()
    assert steps == [] and "mAP" in results["Market1501"]
    assert torch.equal(state(again)["heads.weight"], state(trainer)["heads.weight"])


def state(trainer: DefaultTrainer) -> dict[str, torch.Tensor]:
    return trainer.model.state_dict()


@pytest.mark.parametrize("cut", [3, 5, 8])
def test_a_run_cut_anywhere_and_resumed_ends_with_the_same_bytes(market: Path, tmp_path: Path, cut: int) -> None:
    whole = make(market, tmp_path / "whole", SOLVER__CHECKPOINT_PERIOD_ITERS=1)
    whole.train()

    class KilledError(Exception):
        pass

    def die(trainer: Any) -> None:
        if trainer.iter == cut:
            raise KilledError

    part = make(market, tmp_path / "part", SOLVER__CHECKPOINT_PERIOD_ITERS=1)
    part.register_hooks([CallbackHook(name="killer", after_step=die)])
    with pytest.raises(KilledError):
        part.train()
    rest = make(market, tmp_path / "part", resume=True, SOLVER__CHECKPOINT_PERIOD_ITERS=1)
    assert rest.iter == cut
    rest.train()
    assert all(torch.equal(value, state(rest)[name]) for name, value in state(whole).items())
    assert (tmp_path / "part" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()
    timed = {"time", "data_time", "hook_time", "images_per_second", "eta_seconds"}
    plain = [{k: v for k, v in line.items() if k not in timed} for line in lines(tmp_path / "part")]
    assert plain == [{k: v for k, v in line.items() if k not in timed} for line in lines(tmp_path / "whole")]


def test_resuming_a_finished_run_does_nothing_and_says_so(
    market: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = make(market, tmp_path).train()
    before = (tmp_path / "model_final.pth").stat().st_mtime_ns
    again = make(market, tmp_path, resume=True)
    assert again.train() == results
    assert (tmp_path / "model_final.pth").stat().st_mtime_ns == before
    assert "already at 10 of 10 iterations" in capsys.readouterr().out


def test_a_finished_run_goes_on_when_it_is_given_more_steps(market: Path, tmp_path: Path) -> None:
    make(market, tmp_path).train()
    more = make(market, tmp_path, resume=True, SOLVER__MAX_ITER=12)
    more.train()
    assert more.iter == 12 and lines(tmp_path)[-1]["iteration"] == 11


def test_fewer_steps_than_are_done_are_refused_with_both_numbers(market: Path, tmp_path: Path) -> None:
    make(market, tmp_path).train()
    with pytest.raises(ConfigError, match=r"10 iterations done, beyond the 8"):
        make(market, tmp_path, resume=True, SOLVER__MAX_ITER=8)


def test_another_run_is_not_mixed_into_a_folder(market: Path, tmp_path: Path) -> None:
    make(market, tmp_path).train()
    with pytest.raises(ConfigError, match="holds the checkpoints of another run.*--resume"):
        make(market, tmp_path)


def test_a_folder_without_a_checkpoint_starts_anew_and_begins_its_logs_anew(market: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"iteration": 99}\n')
    make(market, tmp_path, resume=True).train()
    assert lines(tmp_path)[0]["iteration"] == 2
    assert (tmp_path / "metrics.json.1").read_text() == '{"iteration": 99}\n'


def test_changed_solver_keys_are_reported_and_the_new_values_are_in_force(
    market: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(market, tmp_path, SOLVER__MAX_ITER=5, SOLVER__BASE_LR=0.1).train()
    capsys.readouterr()
    more = make(market, tmp_path, resume=True, SOLVER__BASE_LR=0.01, SOLVER__WEIGHT_DECAY=0.002)
    said = capsys.readouterr().out
    assert "SOLVER.BASE_LR was 0.1 in the checkpoint and is 0.01 now" in said
    assert "SOLVER.WEIGHT_DECAY was 0.0005 in the checkpoint and is 0.002 now" in said
    more.train()
    groups = {group["name"]: group for group in more.optimizer.param_groups}
    base = next(group for name, group in groups.items() if "base" in name)
    assert base["weight_decay"] == 0.002 and base["lr"] <= 0.01


def test_a_drawn_seed_is_saved_and_wins_on_resume(market: Path, tmp_path: Path) -> None:
    first = make(market, tmp_path / "a", SEED=-1, SOLVER__MAX_ITER=5)
    first.train()
    again = make(market, tmp_path / "a", SEED=-1, resume=True, SOLVER__MAX_ITER=10)
    again.train()
    assert again.cfg.SEED == first.cfg.SEED
    whole = make(market, tmp_path / "b", SEED=first.cfg.SEED)
    whole.train()
    assert torch.equal(state(again)["heads.weight"], state(whole)["heads.weight"])


@pytest.mark.parametrize(("classes", "refused"), [(0, False), (6, False), (9, False), (5, True)])
def test_the_class_count_is_found_or_checked_at_build(
    market: Path, tmp_path: Path, classes: int, refused: bool
) -> None:
    if refused:
        with pytest.raises(ConfigError, match="NUM_CLASSES is 5, but the training set has 6 identities"):
            make(market, tmp_path, MODEL__HEADS__NUM_CLASSES=classes)
    else:
        trainer = make(market, tmp_path, MODEL__HEADS__NUM_CLASSES=classes)
        assert trainer.cfg.MODEL.HEADS.NUM_CLASSES == (classes or 6)


def test_one_camera_is_reported_and_does_not_end_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    market = write_toy_market(tmp_path / "data", one_camera=True)
    results = make(market, tmp_path / "run").train()
    assert "TEST.EXCLUDE_SAME" in capsys.readouterr().out
    assert results["Market1501"]["mAP"] != results["Market1501"]["mAP"]
    assert json.loads((tmp_path / "run" / "results.json").read_text())["results"]["Market1501"]["mAP"] is None
    assert not (tmp_path / "run" / "model_best.pth").exists()
    off = make(market, tmp_path / "off", TEST__EXCLUDE_SAME="()").train()
    assert 0 <= off["Market1501"]["mAP"] <= 100


def test_identities_can_be_held_out_to_choose_the_best_model_on(
    market: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = make(market, tmp_path / "val", DATASETS__VAL_FRACTION=0.34).train()
    assert list(results) == ["Market1501-val", "Market1501"]
    assert "chosen on the test set" not in capsys.readouterr().out
    make(market, tmp_path / "no").train()
    assert "model_best.pth was chosen on the test set" in capsys.readouterr().out


def test_what_is_not_available_is_refused_by_key(market: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not have: TEST.FLIP.ENABLED True"):
        make(market, tmp_path, TEST__FLIP__ENABLED=True)


def _two_processes(market: Path, output: Path, steps: list[int]) -> list[float]:
    for number, max_iter in enumerate(steps):
        trainer = make(market, output, resume=number > 0, SOLVER__MAX_ITER=max_iter, SOLVER__STEPS_FROM="start")
        trainer.train()
        close_logger()
    return [float(value.double().sum()) for value in trainer.model.state_dict().values()]


def test_two_processes_resume_to_the_same_bytes_and_evaluate_as_one(market: Path, tmp_path: Path) -> None:
    whole = run_processes(_two_processes, 2, market, tmp_path / "whole", [10])
    parts = run_processes(_two_processes, 2, market, tmp_path / "parts", [4, 10])
    assert whole[0] == whole[1] == parts[0] == parts[1]
    cfg = toy_config(market, tmp_path / "one")
    model = DefaultTrainer.build_model(cfg)
    saved = torch.load(tmp_path / "whole" / "model_final.pth")["model"]
    assert not any(name.startswith("module.") for name in saved)
    model.load_state_dict({name: value for name, value in saved.items() if name != "heads.weight"}, strict=False)
    alone = DefaultTrainer.test(cfg, model)["Market1501"]
    together = json.loads((tmp_path / "whole" / "results.json").read_text())["results"]["Market1501"]
    assert alone == pytest.approx(together, abs=1e-9)


def test_the_log_ends_with_one_line_that_says_where_everything_is(
    market: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(market, tmp_path).train()
    last = capsys.readouterr().out.strip().splitlines()[-1]
    for name in ("model_final.pth", "model_best.pth", "log.txt", "metrics.json", "learning_curve.png"):
        assert name in last
    assert logging.getLogger("fastreid_lite").handlers
