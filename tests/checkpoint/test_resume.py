from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.checkpoint import Checkpointer, CheckpointError


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with checkpoints of the iterations 9 and 19, the best one of 9, and the pointer at 19."""
    checkpointer = Checkpointer(tmp_path)
    for name, iteration, publish in (("model_0000", 9, True), ("model_best", 9, False), ("model_0001", 19, True)):
        checkpointer.save(name, {"iteration": iteration, "model": {"weight": torch.ones(50)}}, publish=publish)
    return tmp_path


def test_a_folder_in_which_nothing_was_published_starts_fresh(tmp_path: Path) -> None:
    assert Checkpointer(tmp_path / "absent").find_resume() is None
    assert Checkpointer(tmp_path).find_resume() is None
    for name in ("log.txt", "metrics.json", ".model_0000.pth.7.fastreid_lite.tmp"):
        (tmp_path / name).write_text("x")
    torch.save({"layer.weight": torch.ones(2)}, tmp_path / "resnet50.pth")
    assert Checkpointer(tmp_path).find_resume() is None


@pytest.mark.parametrize("damage", ["cut", "gone", "foreign", "no iteration"])
def test_a_bad_published_file_falls_back_to_the_newest_good_one_with_a_warning(
    run_folder: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = run_folder / "model_0001.pth"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "gone":
        path.unlink()
    elif damage == "foreign":
        path.write_text("not a checkpoint")
    else:
        torch.save({"weight": torch.ones(2)}, path)
    choice = Checkpointer(run_folder).find_resume()
    assert choice is not None
    assert (choice.path.name, choice.iteration) == ("model_0000.pth", 9)
    assert choice.warning is not None and str(path) in choice.warning
    assert choice.warning in caplog.text
    assert "going on from the newest good file" in caplog.text


def test_the_newest_is_the_one_of_the_highest_iteration_whatever_its_name(run_folder: Path) -> None:
    (run_folder / "model_0000.pth").rename(run_folder / "model_0009.pth")
    (run_folder / "last_checkpoint").write_text("model_0005.pth")
    choice = Checkpointer(run_folder).find_resume()
    assert choice is not None and choice.iteration == 19


def test_files_without_a_pointer_are_gone_on_from_with_a_warning(run_folder: Path) -> None:
    (run_folder / "last_checkpoint").unlink()
    choice = Checkpointer(run_folder).find_resume()
    assert choice is not None and choice.iteration == 19
    assert choice.warning is not None and "there is no pointer file" in choice.warning


@pytest.mark.parametrize("text", ["", "  \n", "../other/model_0001.pth", "/model_0001.pth", "a\\b.pth", "..", "\0\0"])
def test_a_pointer_that_is_not_a_bare_name_is_not_followed(run_folder: Path, text: str) -> None:
    (run_folder / "last_checkpoint").write_text(text)
    choice = Checkpointer(run_folder).find_resume()
    assert choice is not None and choice.iteration == 19
    assert choice.warning is not None and "expected the bare name of a file" in choice.warning


def test_a_pointer_with_an_end_of_line_is_followed(run_folder: Path) -> None:
    (run_folder / "last_checkpoint").write_text("model_0000.pth\n")
    choice = Checkpointer(run_folder).find_resume()
    assert choice is not None and choice.iteration == 9 and choice.warning is None


def test_published_but_none_good_is_an_error_that_names_each(run_folder: Path) -> None:
    for path in run_folder.glob("*.pth"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint in .* can be resumed from") as caught:
        Checkpointer(run_folder).find_resume()
    for name in ("model_0000.pth", "model_0001.pth", "model_best.pth"):
        assert str(caught.value).count(name) == 1
    (run_folder / "last_checkpoint").unlink()
    with pytest.raises(CheckpointError, match="another OUTPUT_DIR"):
        Checkpointer(run_folder).find_resume()


def test_a_pointer_alone_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "last_checkpoint").write_text("model_0001.pth")
    with pytest.raises(CheckpointError, match="there is no checkpoint at .*model_0001.pth"):
        Checkpointer(tmp_path).find_resume()


@pytest.mark.parametrize("iteration", [None, -1, True, 2.0, "3"])
def test_a_file_that_names_no_iteration_is_no_checkpoint_of_a_run(tmp_path: Path, iteration: Any) -> None:
    torch.save({"iteration": iteration, "model": {}}, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match="says of no iteration .*set MODEL.WEIGHTS to it"):
        Checkpointer(tmp_path).resume_from(tmp_path / "model.pth")
