"""How the command ends when something goes wrong inside the run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastreid_lite.config import ConfigError
from fastreid_lite.engine.defaults.output_dir import hold_output_dir
from tests.toy_run import ROOT, environment, run_tool, toy_opts, write_toy_market


def test_an_error_with_loader_workers_alive_is_one_line_and_ends_at_once(tmp_path: Path) -> None:
    market = write_toy_market(tmp_path / "data")
    opts = toy_opts(market, tmp_path / "run", DATALOADER__NUM_WORKERS=1, SOLVER__BASE_LR=1e30, SOLVER__WARMUP_ITERS=0)
    command = [sys.executable, str(ROOT / "tools" / "train_net.py"), *opts]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr:
        line = next(line for line in process.stderr if "error:" in line)
        said = time.monotonic()
        rest = process.stderr.read()
    assert "Loss became infinite or NaN at iteration=" in line and "loss_cls = nan" in line
    assert process.wait(timeout=30) == 1
    assert time.monotonic() - said < 10 and "Traceback" not in rest


def test_a_folder_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, time; from fastreid_lite.engine.defaults.output_dir import hold_output_dir\n"
        "hold_output_dir(pathlib.Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=environment(), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="is being written by another run now"):
            hold_output_dir(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    hold_output_dir(tmp_path)
    hold_output_dir(tmp_path)


def test_a_foreign_file_with_an_iteration_is_no_checkpoint_to_resume_from(tmp_path: Path) -> None:
    import torch

    market = write_toy_market(tmp_path / "data")
    torch.save({"model": {}, "iteration": 3}, tmp_path / "foreign.pth")
    done = run_tool("train_net.py", f"--resume={tmp_path / 'foreign.pth'}", *toy_opts(market, tmp_path / "run"))
    assert done.returncode == 1
    assert "is no checkpoint of a run of this trainer: it has no optimizer, trainer" in done.stderr
    assert "Traceback" not in done.stderr
