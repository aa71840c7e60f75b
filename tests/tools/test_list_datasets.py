from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fastreid_lite.config import get_cfg
from tests.tools.loading import load_tool
from tests.toy_run import run_tool


@pytest.mark.parametrize("words", [["SOLVER.BASE_LR", "-1e-3"], ["SOLVER.BASE_LR=-1e-3"]])
def test_a_negative_value_is_a_value(words: list[str]) -> None:
    done = run_tool("list_datasets.py", *words)
    # As in train_net.py: whatever is said of the value, it was not taken for a flag.
    assert "unknown flag" not in done.stderr and "has no value" not in done.stderr
    assert done.returncode == 0 and "Market1501" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["leftover"], "'leftover' is left over"),
        (["DATASETS.ROOT"], "DATASETS.ROOT has no value"),
        (["--config-file"], "--config-file has no value"),
        (["--config-file", "nowhere.yml"], "cannot read the config file nowhere.yml"),
        (["--confg-file", "x"], "did you mean --config-file?"),
        (["--resume"], "--resume is a flag of a training run"),
        (["--num-processes", "2"], "--num-processes is a flag of a training run"),
        (["SOLVER.BASE_LR", "fast"], "SOLVER.BASE_LR"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(words: list[str], said: str) -> None:
    done = run_tool("list_datasets.py", *words)
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_help_is_of_this_tool() -> None:
    done = run_tool("list_datasets.py", "--help")
    assert done.returncode == 0
    assert "Which datasets there are" in done.stdout and "--resume" not in done.stdout


def test_a_folder_that_cannot_be_looked_into_is_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = load_tool("list_datasets")

    def deny() -> str:
        raise PermissionError(13, "Permission denied", "/locked")

    def open_dataset(cfg: Any, name: str) -> Any:
        return SimpleNamespace(folder="/locked", missing=deny)

    monkeypatch.setattr(tool, "open_dataset", open_dataset)
    rows = {name: (folder, there) for name, folder, there in tool.describe(get_cfg())}
    assert rows["Market1501"] == ("/locked", "no: [Errno 13] Permission denied: '/locked'")
