from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from fastreid_lite.config import ConfigValueError, load_config, parse_args
from tests.tools.loading import load_tool
from tests.toy_run import run_tool, toy_opts, write_toy_market


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"))


def one_line(stderr: str) -> str:
    (line,) = stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("plain_train_net")


@pytest.mark.parametrize(
    "words",
    [
        ["--resume"],
        ["--eval-only"],
        ["--num-processes", "2"],
        ["--num-machines", "2", "--dist-url", "tcp://localhost:1"],
        ["SOLVER.AMP.ENABLED", "True"],
        ["SOLVER.ACCUMULATE_STEPS", "2"],
        ["SOLVER.CLIP_GRADIENTS.ENABLED", "True"],
        ["MODEL.WEIGHTS", "some.pth"],
    ],
    ids=lambda words: words[0],
)
def test_what_the_plain_loop_does_not_do_is_refused_by_name(tool: ModuleType, words: list[str]) -> None:
    args = parse_args(words)
    with pytest.raises(ConfigValueError, match=re.escape(f"the plain loop does not do {' '.join(words[:2])}:")):
        tool.refuse(args, load_config(None, args.opts))


def test_processes_of_torchrun_are_refused(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigValueError, match="torchrun with several processes"):
        tool.refuse(parse_args([]), load_config(None))


def test_a_refusal_names_everything_in_one_line_and_makes_no_folder(market: Path, tmp_path: Path) -> None:
    opts = toy_opts(market, tmp_path / "out", SOLVER__AMP__ENABLED="True", SOLVER__CLIP_GRADIENTS__ENABLED="True")
    done = run_tool("plain_train_net.py", "--resume", *opts)
    assert done.returncode == 2
    said = "--resume, SOLVER.AMP.ENABLED True, SOLVER.CLIP_GRADIENTS.ENABLED True"
    assert said in one_line(done.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", ["DATASETS.NAMES", "DATASETS.TESTS"])
def test_an_error_of_building_is_one_line_and_no_step_is_done(market: Path, tmp_path: Path, key: str) -> None:
    done = run_tool("plain_train_net.py", *toy_opts(market, tmp_path / "out"), key, "[NoSuchSet]")
    assert done.returncode == 1
    assert "NoSuchSet" in one_line(done.stderr)
    assert not (tmp_path / "out" / "metrics.json").exists()
