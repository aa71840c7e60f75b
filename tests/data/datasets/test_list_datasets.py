from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
MakeMarket = Callable[..., Path]


# Runs a script as a program on a Python whose torch cannot be imported.
WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(REPOSITORY / "tools" / "list_datasets.py"), *arguments]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, encoding="utf-8")


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: " ".join(line.split()[1:]) for line in done.stdout.splitlines()}


def test_each_name_is_listed_with_its_folder_and_whether_it_is_there(market: MakeMarket, tmp_path: Path) -> None:
    market()
    table = lines(run("DATASETS.ROOT", str(tmp_path)))
    assert table["name"] == "folder there"
    assert table["Market1501"] == f"{tmp_path}/Market-1501-v15.09.15 yes"
    assert table["SyntheticReID"].startswith(f"{tmp_path}/synthetic_reid/")
    assert table["SyntheticReID"].endswith("images, written when first used")
    assert table["CsvReID:PATH"] == f"{tmp_path}/PATH give a PATH"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    table = lines(run("DATASETS.ROOT", str(tmp_path)))
    assert table["Market1501"].endswith(f"no: the folder '{tmp_path}/Market-1501-v15.09.15' does not exist")


def test_names_with_a_path_are_taken_from_the_config(tmp_path: Path) -> None:
    (tmp_path / "run.yml").write_text(
        f"DATASETS:\n  ROOT: '{tmp_path}'\n  NAMES: ['CsvReID:数 据.csv', 'Nobody:x']\n  TESTS: ['Market1501:x']\n",
        encoding="utf-8",
    )
    done = run("--config-file", str(tmp_path / "run.yml"))
    assert f"no: the file '{tmp_path}/数 据.csv' does not exist" in done.stdout
    assert "no: unknown dataset 'Nobody'" in done.stdout
    assert "no: dataset 'Market1501:x' (DATASETS.NAMES or DATASETS.TESTS) has a path" in done.stdout


def test_an_unknown_key_is_refused() -> None:
    done = run("DATASETS.ROT", "x")
    assert done.returncode == 2 and "did you mean DATASETS.ROOT" in done.stderr
