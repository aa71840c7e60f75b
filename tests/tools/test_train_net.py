from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toy_run import ROOT, environment, run_tool, toy_opts, write_toy_market


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"))


def start(market: Path, output: Path, *flags: str, slow: float = 0.0, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "tools" / "train_net.py"), *flags, *toy_opts(market, output, **more)]
    env = environment(SLOW_STEPS=str(slow))
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(path: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["MODEL.WEIGHTS"], "MODEL.WEIGHTS has no value"),
        (["path.pth"], "path.pth"),
        (["MODEL.WEIGTHS", "x"], "did you mean MODEL.WEIGHTS?"),
        (["MODEL.WEIGTHS=x"], "did you mean MODEL.WEIGHTS?"),
        (["--eval-only"], "--eval-only has nothing to evaluate"),
        (["--eval-only", "MODEL.WEIGHTS", "nowhere.pth"], "nowhere.pth"),
        (["--resum"], "did you mean --resume?"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2_and_makes_no_folder(
    tmp_path: Path, words: list[str], said: str
) -> None:
    done = run_tool("train_net.py", "OUTPUT_DIR", str(tmp_path / "out"), *words)
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_help_and_errors_come_without_torch() -> None:
    code = (
        "import sys; from fastreid_lite.cli import train\n"
        "try: train(['--help'])\n"
        "except SystemExit: pass\n"
        "try: train(['SOLVER.BASE_LRR', '1'])\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_flag_after_the_options_is_still_a_flag_and_resumes(market: Path, tmp_path: Path) -> None:
    first = run_tool("train_net.py", *toy_opts(market, tmp_path, SOLVER__MAX_ITER=5))
    assert first.returncode == 0, first.stdout + first.stderr
    again = run_tool("train_net.py", *toy_opts(market, tmp_path, SOLVER__MAX_ITER=8), "--resume")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "resuming from" in again.stdout and "5 of 8 iterations are done" in again.stdout
    third = run_tool("train_net.py", *toy_opts(market, tmp_path))
    assert third.returncode == 2 and "holds the checkpoints of another run" in third.stderr
    evaluated = run_tool("train_net.py", "--eval-only", "--resume", *toy_opts(market, tmp_path))
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr
    trained = json.loads((tmp_path / "results.json").read_text())["results"]
    assert json.loads((tmp_path / "evaluation.json").read_text())["results"] == trained


def test_eval_only_refuses_a_checkpoint_that_lacks_a_backbone_tensor(market: Path, tmp_path: Path) -> None:
    from fastreid_lite.engine.defaults import DefaultTrainer
    from tests.toy_run import toy_config

    model = DefaultTrainer.build_model(toy_config(market, tmp_path))
    weights = model.state_dict()
    del weights["backbone.conv.weight"]
    torch.save({"model": weights}, tmp_path / "broken.pth")
    opts = toy_opts(market, tmp_path, MODEL__WEIGHTS=tmp_path / "broken.pth")
    done = run_tool("train_net.py", "--eval-only", *opts)
    assert done.returncode == 1
    assert "backbone.conv.weight" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_at_the_next_boundary_with_a_checkpoint_that_resumes(
    market: Path, tmp_path: Path, number: signal.Signals
) -> None:
    more = {"SOLVER__MAX_ITER": 60, "SOLVER__CHECKPOINT_PERIOD_ITERS": 1000, "TEST__EVAL_PERIOD_ITERS": 0}
    process = start(market, tmp_path, slow=0.1, **more)
    wait_for(tmp_path / "metrics.json")
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode in (-number, 128 + number), output
    assert not (tmp_path / "model_final.pth").exists() and not (tmp_path / "results.json").exists()
    for line in (tmp_path / "metrics.json").read_text().splitlines():
        json.loads(line)
    done = run_tool("train_net.py", "--resume", *toy_opts(market, tmp_path, **{**more, "SOLVER__MAX_ITER": 12}))
    output = done.stdout + done.stderr
    assert done.returncode == 0 or "beyond the 12" in output, output
    assert "resuming from" in output or "beyond the 12" in output


def test_a_second_signal_acts_at_once_and_leaves_no_half_written_file(market: Path, tmp_path: Path) -> None:
    process = start(market, tmp_path, slow=5.0, SOLVER__MAX_ITER=60)
    wait_for(tmp_path / "config.yaml")
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode in (-signal.SIGINT, 130), output
    assert time.monotonic() - began < 5
    assert not list(tmp_path.glob("*.pth"))


def test_plain_train_net_gives_the_same_losses(market: Path, tmp_path: Path) -> None:
    trained = run_tool("train_net.py", *toy_opts(market, tmp_path / "a", SOLVER__LOG_PERIOD_ITERS=1))
    plain = run_tool("plain_train_net.py", *toy_opts(market, tmp_path / "b", SOLVER__LOG_PERIOD_ITERS=1))
    assert trained.returncode == 0, trained.stdout + trained.stderr
    assert plain.returncode == 0, plain.stdout + plain.stderr
    lines = [
        [json.loads(line) for line in (tmp_path / name / "metrics.json").read_text().splitlines()] for name in "ab"
    ]
    losses = [[(line["iteration"], line["loss_cls"], line["loss_triplet"]) for line in part] for part in lines]
    assert losses[0] == losses[1] and len(losses[0]) == 10
    weights = [torch.load(tmp_path / name / "model_final.pth")["model"] for name in "ab"]
    assert all(torch.equal(weights[1][name], value) for name, value in weights[0].items())


@pytest.mark.slow
def test_num_processes_and_torchrun_train_to_the_same_weights(market: Path, tmp_path: Path) -> None:
    opts = toy_opts(market, tmp_path / "a")
    spawned = run_tool("train_net.py", "--num-processes", "2", *opts)
    assert spawned.returncode == 0, spawned.stdout + spawned.stderr
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [str(ROOT / "tools" / "train_net.py"), *toy_opts(market, tmp_path / "b")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    weights = [torch.load(tmp_path / name / "model_final.pth")["model"] for name in "ab"]
    assert all(torch.equal(weights[1][name], value) for name, value in weights[0].items())


@pytest.mark.slow
def test_a_process_that_dies_ends_the_others_with_its_name(market: Path, tmp_path: Path) -> None:
    opts = toy_opts(market, tmp_path, DATASETS__NAMES="[NoSuchSet]")
    done = run_tool("train_net.py", "--num-processes", "2", *opts, timeout=60)
    assert done.returncode == 1
    assert "NoSuchSet" in done.stderr and "the process of rank" in done.stderr
