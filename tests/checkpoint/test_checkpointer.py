from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.checkpoint import BEST_NAME, FINAL_NAME, Checkpointer, CheckpointError, files, periodic_name


def state_at(iteration: int, **more: Any) -> dict[str, Any]:
    return {"iteration": iteration, "model": {"weight": torch.full((3,), float(iteration))}, **more}


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def pointer_in(folder: Path) -> str:
    return (folder / "last_checkpoint").read_text()


def test_a_saved_state_is_published_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    path = Checkpointer(folder).save(periodic_name(3, 11, True), state_at(11))
    assert path == folder / "model_0003.pth"
    assert names_in(folder) == ["last_checkpoint", "model_0003.pth"]
    assert pointer_in(folder) == "model_0003.pth"
    choice = Checkpointer(folder).find_resume()
    assert choice is not None
    assert (choice.path, choice.iteration, choice.warning) == (path, 11, None)
    assert torch.equal(choice.state["model"]["weight"], torch.full((3,), 11.0))
    assert torch.load(path)["iteration"] == 11


def test_names_are_those_of_fast_reid_with_the_iteration_inside_an_epoch() -> None:
    assert periodic_name(0, 201, True) == "model_0000"
    assert periodic_name(12, 2500, False) == "model_iter_0002500"
    assert (BEST_NAME, FINAL_NAME) == ("model_best", "model_final")


def test_what_would_not_load_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path / "run", keep=1)
    with pytest.raises(TypeError, match="a numpy.float64 at metric"):
        checkpointer.save("model_0000", state_at(1, metric=np.float64(0.5)), periodic=True)
    assert not (tmp_path / "run").exists()
    assert checkpointer.state_dict() == {"periodic": []}


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "last_checkpoint", "a\\b"])
def test_a_name_that_is_not_bare_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a checkpoint cannot be called .*; expected a bare file name"):
        Checkpointer(tmp_path).save(name, state_at(0))


@pytest.mark.parametrize("keep", [-1, True, 1.5])
def test_a_keep_that_is_no_count_is_refused(tmp_path: Path, keep: int) -> None:
    with pytest.raises(ValueError, match=f"keep is {keep}; expected how many"):
        Checkpointer(tmp_path, keep=keep)


def save_three(checkpointer: Checkpointer, first: int) -> None:
    for epoch in range(first, first + 3):
        checkpointer.save(f"model_{epoch:04d}", state_at(epoch, checkpointer=checkpointer.state_dict()), periodic=True)
        assert (checkpointer.save_dir / pointer_in(checkpointer.save_dir)).is_file()


def test_the_newest_stay_beside_final_and_best_through_a_resume(tmp_path: Path) -> None:
    first = Checkpointer(tmp_path, keep=2)
    save_three(first, 0)
    first.save(BEST_NAME, state_at(1), publish=False)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0001.pth", "model_0002.pth", "model_best.pth"]
    second = Checkpointer(tmp_path, keep=2)
    choice = second.find_resume()
    assert choice is not None and choice.path.name == "model_0002.pth"
    second.load_state_dict(choice.state["checkpointer"])
    assert second.state_dict() == {"periodic": ["model_0001.pth", "model_0002.pth"]}
    save_three(second, 3)
    second.save(FINAL_NAME, state_at(5))
    kept = ["model_0004.pth", "model_0005.pth"]
    assert names_in(tmp_path) == ["last_checkpoint", *kept, "model_best.pth", "model_final.pth"]
    assert pointer_in(tmp_path) == "model_final.pth"


def test_a_kept_file_removed_by_hand_is_no_error(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=2)
    save_three(checkpointer, 0)
    (tmp_path / "model_0001.pth").unlink()
    save_three(checkpointer, 3)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0004.pth", "model_0005.pth"]
    resumed = Checkpointer(tmp_path, keep=2)
    (tmp_path / "model_0004.pth").unlink()
    resumed.load_state_dict(checkpointer.state_dict())
    assert resumed.state_dict() == {"periodic": ["model_0005.pth"]}


def test_files_of_others_are_never_deleted(tmp_path: Path) -> None:
    Checkpointer(tmp_path).save("model_0000", state_at(0), periodic=True)
    torch.save({}, tmp_path / "model_0001.pth")
    save_three(Checkpointer(tmp_path, keep=1), 5)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0000.pth", "model_0001.pth", "model_0007.pth"]
    outside = tmp_path / "outside.pth"
    outside.touch()
    inner = Checkpointer(tmp_path / "inner", keep=1)
    inner.load_state_dict({"periodic": ["../outside.pth"]})
    save_three(inner, 0)
    assert outside.exists()


def test_the_file_that_the_pointer_names_outlives_newer_unpublished_ones(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=1)
    checkpointer.save("model_0000", state_at(0), periodic=True)
    for epoch in (1, 2):
        checkpointer.save(f"model_{epoch:04d}", state_at(epoch), periodic=True, publish=False)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0000.pth", "model_0002.pth"]
    checkpointer.save("model_0003", state_at(3), periodic=True)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0003.pth"]


def test_saving_one_name_twice_counts_once(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=2)
    for name in ("a", "b", "a", "c"):
        checkpointer.save(name, state_at(0), periodic=True)
    assert names_in(tmp_path) == ["a.pth", "c.pth", "last_checkpoint"]


def test_keep_zero_keeps_all(tmp_path: Path) -> None:
    save_three(Checkpointer(tmp_path), 0)
    assert len(names_in(tmp_path)) == 4


def test_an_old_file_that_cannot_be_deleted_is_warned_of_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer = Checkpointer(tmp_path, keep=1)

    def fail(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        save_three(checkpointer, 0)
    assert "could not delete the old checkpoint" in caplog.text
    save_three(checkpointer, 3)
    assert names_in(tmp_path) == ["last_checkpoint", "model_0005.pth"]


def test_the_best_file_is_replaced_whole_and_never_published(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=1)
    checkpointer.save("model_0000", state_at(0), periodic=True)
    checkpointer.save(BEST_NAME, state_at(0, metric=0.9), publish=False)
    checkpointer.save("model_0001", state_at(1), periodic=True)
    assert checkpointer.load(tmp_path / "model_best.pth")["metric"] == 0.9
    checkpointer.save(BEST_NAME, state_at(2, metric=0.95), publish=False)
    assert checkpointer.load(tmp_path / "model_best.pth")["metric"] == 0.95
    assert pointer_in(tmp_path) == "model_0001.pth"
    assert names_in(tmp_path) == ["last_checkpoint", "model_0001.pth", "model_best.pth"]


FAILING_CALLS = [(call, number) for call, calls in (("fsync", 4), ("replace", 2)) for number in range(1, calls + 1)]


@pytest.mark.parametrize(("call", "number"), [*FAILING_CALLS, ("save", 1)])
def test_a_save_that_fails_anywhere_keeps_a_good_checkpoint_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """The calls of a save, in order: flush, rename, flush the folder, of the checkpoint and then of the pointer."""
    checkpointer = Checkpointer(tmp_path, keep=1)
    checkpointer.save("model_0000", state_at(0), periodic=True)
    module = torch if call == "save" else os
    original, calls = getattr(module, call), []

    def fail(*arguments: Any, **keywords: Any) -> Any:
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(module, call, fail)
        with pytest.raises(OSError, match="(could not write .*/|)(model_0001.pth|last_checkpoint).*Input/output error"):
            checkpointer.save("model_0001", state_at(1), periodic=True)
    assert len(calls) == number
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]
    resumed = Checkpointer(tmp_path, keep=1)
    choice = resumed.find_resume()
    assert choice is not None and choice.warning is None
    assert torch.equal(choice.state["model"]["weight"], torch.full((3,), float(choice.iteration)))
    # The run, or its next part, goes on and clears up.
    checkpointer.save("model_0002", state_at(2), periodic=True)
    assert pointer_in(tmp_path) == "model_0002.pth"
    assert "model_0000.pth" not in names_in(tmp_path)


def test_leftovers_of_a_killed_process_are_cleared_at_the_first_save(tmp_path: Path) -> None:
    left = tmp_path / f".model_0001.pth.0{files._TEMPORARY_SUFFIX}"
    left.write_bytes(b"half")
    Checkpointer(tmp_path).save("model_0002", state_at(2))
    assert names_in(tmp_path) == ["last_checkpoint", "model_0002.pth"]


def test_resuming_from_a_path_never_falls_back(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save("model_0000", state_at(0))
    (tmp_path / "model_0001.pth").write_bytes(b"")
    assert checkpointer.resume_from(tmp_path / "model_0000.pth").iteration == 0
    with pytest.raises(CheckpointError, match="model_0001.pth is empty"):
        checkpointer.resume_from(tmp_path / "model_0001.pth")
    with pytest.raises(CheckpointError, match="there is no checkpoint at .*absent.pth"):
        checkpointer.resume_from(tmp_path / "absent.pth")


def test_a_renamed_folder_goes_on(tmp_path: Path) -> None:
    Checkpointer(tmp_path / "before").save("model_0000", state_at(4))
    shutil.move(tmp_path / "before", tmp_path / "after")
    choice = Checkpointer(tmp_path / "after").find_resume()
    assert choice is not None and choice.path == tmp_path / "after" / "model_0000.pth"
