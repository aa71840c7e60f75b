from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.toy_run import ROOT, environment, run_tool, toy_opts, write_toy_market

RUN: dict[str, Any] = {
    "SOLVER__MAX_ITER": 60,
    "SOLVER__CHECKPOINT_PERIOD_ITERS": 4,
    "SOLVER__LOG_PERIOD_ITERS": 1,
    "TEST__EVAL_PERIOD_ITERS": 10,
}


def newest_step(metrics: Path) -> int:
    """The iteration of the last whole line, -1 where there is none."""
    whole = metrics.read_text().rpartition("\n")[0] if metrics.exists() else ""
    return json.loads(whole.splitlines()[-1])["iteration"] if whole else -1


def kill_at(step: int, command: list[str], metrics: Path) -> None:
    """Run ``command`` and kill it without warning once ``step`` stands in its log."""
    process = subprocess.Popen(command, env=environment(SLOW_STEPS="0.05"), stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while newest_step(metrics) < step:
            assert process.poll() is None, f"the run ended by itself before step {step}: {process.returncode}"
            assert time.monotonic() < deadline, f"step {step} did not come"
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait(timeout=30) == -9


@pytest.mark.slow
def test_a_run_killed_at_five_drawn_steps_ends_with_the_bytes_of_one_that_was_not(tmp_path: Path) -> None:
    market = write_toy_market(tmp_path / "toy")
    whole = run_tool("train_net.py", *toy_opts(market, tmp_path / "whole", **RUN))
    assert whole.returncode == 0, whole.stdout + whole.stderr
    # One in each stretch of ten, so that a log left behind by the part before never holds the step that is waited for.
    steps = [10 * part + int(drawn) for part, drawn in enumerate(np.random.default_rng(7).integers(0, 5, 5))]
    opts = toy_opts(market, tmp_path / "killed", **RUN)
    for step in steps:
        command = [sys.executable, str(ROOT / "tools" / "train_net.py"), "--resume", *opts]
        kill_at(step, command, tmp_path / "killed" / "metrics.json")
    rest = run_tool("train_net.py", "--resume", *opts)
    assert rest.returncode == 0, rest.stdout + rest.stderr
    assert "resuming from" in rest.stdout
    wanted, found = (torch.load(tmp_path / name / "model_final.pth")["model"] for name in ("whole", "killed"))
    assert wanted.keys() == found.keys()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    results = [(tmp_path / name / "results.json").read_bytes() for name in ("whole", "killed")]
    assert results[0] == results[1]
    log = (tmp_path / "killed" / "metrics.json").read_text()
    iterations = [json.loads(line)["iteration"] for line in log.splitlines()]
    assert sorted(set(iterations)) == list(range(60))
