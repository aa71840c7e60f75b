from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.toy_run import run_tool, toy_opts, write_toy_market


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def finished(market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 5 steps, under a name that it has lost by the time it is resumed."""
    folder = tmp_path_factory.mktemp("run") / "first_name"
    done = run_tool("train_net.py", *toy_opts(market, folder, SOLVER__MAX_ITER=5, SOLVER__CHECKPOINT_PERIOD_ITERS=2))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder.rename(folder.with_name("second_name"))


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "third_name"))


def test_a_renamed_folder_is_resumed_from_its_own_file(market: Path, folder: Path) -> None:
    done = run_tool("train_net.py", "--resume", *toy_opts(market, folder, SOLVER__MAX_ITER=8))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"resuming from {folder / 'model_final.pth'}: 5 of 8 iterations are done" in done.stdout
    assert "first_name" not in done.stdout + done.stderr


def test_resume_says_that_the_pointer_won_over_model_weights(market: Path, folder: Path, tmp_path: Path) -> None:
    weights = Path(shutil.copy(folder / "model_iter_0000001.pth", tmp_path / "other.pth"))
    opts = toy_opts(market, folder, SOLVER__MAX_ITER=6, MODEL__WEIGHTS=weights)
    done = run_tool("train_net.py", "--resume", *opts)
    assert done.returncode == 0, done.stdout + done.stderr
    said = f"MODEL.WEIGHTS {weights} is not used: the run goes on from {folder / 'model_final.pth'}"
    assert said in done.stdout


def test_a_dangling_pointer_falls_back_to_the_newest_good_file_with_a_warning(market: Path, folder: Path) -> None:
    (folder / "model_final.pth").unlink()
    (folder / "model_best.pth").unlink()
    assert (folder / "last_checkpoint").read_text().strip() == "model_final.pth"
    done = run_tool("train_net.py", "--resume", *toy_opts(market, folder, SOLVER__MAX_ITER=6))
    assert done.returncode == 0, done.stdout + done.stderr
    warning = next(line for line in done.stdout.splitlines() if "going on from the newest good file" in line)
    assert "model_final.pth" in warning and str(folder / "model_iter_0000003.pth") in warning
    assert "4 of 6 iterations are done" in done.stdout


@pytest.mark.parametrize("name", ["NoSuchSet", "ImageFolderReID:/no/such/folder"])
def test_a_bad_test_set_ends_the_run_in_one_line_before_its_first_step(market: Path, tmp_path: Path, name: str) -> None:
    done = run_tool(
        "train_net.py", *toy_opts(market, tmp_path, DATASETS__TESTS=f"[{name}]", SOLVER__LOG_PERIOD_ITERS=1)
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert name.rpartition(":")[2] in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.pth")) and not (tmp_path / "results.json").exists()
    metrics = tmp_path / "metrics.json"
    assert not metrics.exists() or metrics.read_text() == ""
