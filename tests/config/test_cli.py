"""CL-01, CL-02 and CL-03: what the command line takes, and what it says of the rest."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fastreid_lite.config import (
    ConfigKeyError,
    ConfigTypeError,
    ConfigValueError,
    build_parser,
    check_weights,
    config_error_exit,
    get_cfg,
    load_config,
    parse_args,
)
from fastreid_lite.config.options import split_options

Write = Callable[[str, str], Path]
ROOT = Path(__file__).resolve().parents[2]


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that says why ``words`` are refused."""
    with pytest.raises(SystemExit) as exit_:
        args = parse_args(words)
        with config_error_exit("train_net.py"):
            load_config(args.config_file, args.opts)
    assert exit_.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert ": error: " in line
    return line


def test_flags_and_options_stand_in_any_order() -> None:
    for words in (
        [
            "--config-file",
            "f.yml",
            "--eval-only",
            "--resume",
            "--num-processes",
            "2",
            "SOLVER.MAX_ITER",
            "5",
            "SEED=-1",
        ],
        ["SOLVER.MAX_ITER", "5", "--resume", "--config-file=f.yml", "SEED=-1", "--num-processes=2", "--eval-only"],
    ):
        args = parse_args(words)
        assert (args.config_file, args.eval_only, args.resume, args.num_processes) == ("f.yml", True, True, 2)
        assert args.opts == ["SOLVER.MAX_ITER", "5", "SEED=-1"]


def test_nothing_given_is_one_process_from_the_start_with_the_defaults() -> None:
    args = parse_args([])
    assert vars(args) == {
        "config_file": None,
        "eval_only": False,
        "resume": False,
        "num_processes": 1,
        "num_gpus": None,
        "num_machines": 1,
        "machine_rank": 0,
        "dist_url": "auto",
        "opts": [],
    }


def test_resume_takes_a_path_only_after_an_equals_sign() -> None:
    args = parse_args(["--resume", "SOLVER.MAX_ITER", "5"])
    assert (args.resume, args.opts) == (True, ["SOLVER.MAX_ITER", "5"])
    assert parse_args(["SOLVER.MAX_ITER", "5", "--resume=a b/c.pth"]).resume == "a b/c.pth"


def test_a_path_after_resume_without_the_sign_says_how_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["--resume", "out/model.pth"], capsys)
    assert "'out/model.pth' is left over" in line and "--resume=PATH" in line
    assert "--resume= has no path" in refused(["--resume="], capsys)


def test_negative_values_are_values() -> None:
    args = parse_args(["SOLVER.BASE_LR", "-1e-3", "SEED", "-5", "--eval-only", "TEST.EVAL_PERIOD", "-1"])
    assert args.eval_only
    cfg = load_config(None, args.opts)
    assert (cfg.SOLVER.BASE_LR, cfg.SEED, cfg.TEST.EVAL_PERIOD) == (-1e-3, -5, -1)


def test_after_two_dashes_all_words_are_options() -> None:
    assert parse_args(["--resume", "--", "MODEL.WEIGHTS", "--x"]).opts == ["MODEL.WEIGHTS", "--x"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["MODEL.WEIGHTS"], "MODEL.WEIGHTS has no value: options are KEY VALUE or KEY=VALUE"),
        (
            ["MODEL.WEIGHTS", "SOLVER.MAX_ITER", "5"],
            "MODEL.WEIGHTS has no value (SOLVER.MAX_ITER follows): options are",
        ),
        (["MODEL.WEIGHTS", "SOLVER.MAX_ITER=5"], "MODEL.WEIGHTS has no value (SOLVER.MAX_ITER=5 follows): options are"),
        (["MODEL.WEIGHTS", "--resume"], "MODEL.WEIGHTS has no value: options are KEY VALUE or KEY=VALUE"),
        (
            ["path.pth"],
            "'path.pth' is left over: no key of this name, and no value; options are KEY VALUE or KEY=VALUE",
        ),
        (
            ["path.pth", "SEED", "1"],
            "'path.pth' is left over (SEED follows): no key of this name, and no value; options",
        ),
        (["a/path.pth", "SEED", "1"], "'a/path.pth' is left over: it is no key; options are KEY VALUE or KEY=VALUE"),
        (["\\"], "'\\\\' is left over: a stray backslash or blank; options are KEY VALUE or KEY=VALUE"),
        (["SEED", "1", " "], "' ' is left over: a stray backslash or blank; options are KEY VALUE or KEY=VALUE"),
        (["SEED", "\\"], "SEED is followed by '\\\\', a stray backslash or blank"),
        (
            ["SEED", "1", "SOLVER.MAXITER"],
            "'SOLVER.MAXITER' is left over: no key of this name, and no value; did you mean SOLVER.MAX_ITER?",
        ),
        (["SOLVER.BASE_RL=1"], "unknown key SOLVER.BASE_RL (command line); did you mean SOLVER.BASE_LR?"),
        (["SOLVER.BASE_RL", "1"], "unknown key SOLVER.BASE_RL (command line); did you mean SOLVER.BASE_LR?"),
        (["BASE_LR", "1"], "unknown key BASE_LR (command line); did you mean SOLVER.BASE_LR?"),
        (["OUTPUT_DIR.X", "1"], "OUTPUT_DIR takes a str, not a section (command line)"),
        (["SOLVER=3"], "SOLVER is a section: it takes keys, not 3, an int (command line)"),
        (["SOLVER.BASE_LR", "=", "0.1"], "'0.1' is left over: it is no key"),
        (["--config-file"], "--config-file has no value"),
        (["--config-file", "--resume"], "--config-file has no value"),
        (["--config-fil", "x"], "unknown flag --config-fil; did you mean --config-file?"),
        (["--zzz"], "unknown flag --zzz"),
        (["--eval-only=1"], "--eval-only: ignored explicit argument '1'"),
        (["--num-processes", "two"], "--num-processes: invalid int value: 'two'"),
        (["--num-processes", "0"], "--num-processes must be at least 1, got 0"),
        (["--num-gpus", "-1"], "--num-gpus must not be negative, got -1"),
        (["--num-gpus", "2", "--num-processes", "3"], "--num-processes 3 and --num-gpus 2 differ: give one of them"),
        (["--num-machines", "0"], "--num-machines must be at least 1, got 0"),
        (["--machine-rank", "1"], "--machine-rank must be from 0 to 0, got 1"),
        (["--num-machines", "2"], "--num-machines needs --dist-url tcp://HOST:PORT"),
        (["--config-file", "nope.yml"], "cannot read the config file nope.yml"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_exit_status_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(words, capsys)
    assert list(tmp_path.iterdir()) == []


def test_fast_reids_flags_mean_what_they_meant() -> None:
    words = ["--num-gpus", "4", "--num-machines", "2", "--machine-rank", "1", "--dist-url", "tcp://10.0.0.1:29500"]
    args = parse_args(words)
    assert (args.num_gpus, args.num_processes, args.num_machines, args.machine_rank) == (4, 4, 2, 1)
    assert args.dist_url == "tcp://10.0.0.1:29500"
    assert (parse_args(["--num-gpus", "0"]).num_processes, parse_args(["--num-gpus=2"]).num_processes) == (1, 2)


def test_a_value_may_hold_an_equals_sign_a_blank_or_nothing() -> None:
    pairs = split_options(["MODEL.WEIGHTS", "a=b", "OUTPUT_DIR=x y=z", "DATASETS.ROOT", "", "MODEL.DEVICE="])
    assert pairs == [("MODEL.WEIGHTS", "a=b"), ("OUTPUT_DIR", "x y=z"), ("DATASETS.ROOT", ""), ("MODEL.DEVICE", "")]
    with pytest.raises(ConfigKeyError, match="3 is left over: it is no key"):
        split_options([3, "x"])


def test_a_config_error_in_the_block_is_one_line_and_others_pass(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_, config_error_exit():
        raise ConfigTypeError("the sentence")
    assert exit_.value.code == 2
    assert capsys.readouterr().err.endswith(": error: the sentence\n")
    with pytest.raises(ZeroDivisionError), config_error_exit():
        raise ZeroDivisionError


def test_eval_only_without_weights_is_refused(tmp_path: Path) -> None:
    cfg = get_cfg()
    with pytest.raises(
        ConfigKeyError, match="--eval-only has nothing to evaluate: give MODEL.WEIGHTS FILE, or --resume"
    ):
        check_weights(parse_args(["--eval-only"]), cfg)
    check_weights(parse_args(["--eval-only", "--resume"]), cfg)
    check_weights(parse_args([]), cfg)


def test_weights_that_are_not_there_are_refused(tmp_path: Path) -> None:
    cfg = get_cfg()
    cfg.MODEL.WEIGHTS = str(tmp_path / "gone.pth")
    for words in (["--eval-only"], []):
        with pytest.raises(ConfigValueError, match="MODEL.WEIGHTS names a file that is not there: .*gone.pth"):
            check_weights(parse_args(words), cfg)
    check_weights(parse_args(["--resume"]), cfg)  # the checkpoint goes before MODEL.WEIGHTS
    with pytest.raises(ConfigValueError, match="--resume names a file that is not there: away.pth"):
        check_weights(parse_args(["--resume=away.pth"]), cfg)
    (tmp_path / "gone.pth").write_bytes(b"")
    check_weights(parse_args(["--eval-only"]), cfg)


def test_the_parser_alone_can_be_extended() -> None:
    assert isinstance(build_parser(), argparse.ArgumentParser)


def test_help_comes_within_half_a_second_and_shows_examples() -> None:
    code = (
        "import sys; from fastreid_lite.config import parse_args\n"
        "try: parse_args(['--help'])\n"
        "finally: assert not {'torch', 'yaml', 'numpy'} & set(sys.modules)"
    )
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("python tools/train_net.py --config-file") == 3
    assert "KEY VALUE | KEY=VALUE" in done.stdout
    assert min(seconds) < 0.5
