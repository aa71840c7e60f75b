from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fastreid_lite.checkpoint import CheckpointError, load_checkpoint


class Canary:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def write(path: Path, content: Any, form: str) -> None:
    if form.startswith("pickle"):
        path.write_bytes(pickle.dumps(content, protocol=int(form[-1])))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle 2", "pickle 3", "pickle 4", "pickle 5"])
@pytest.mark.parametrize("place", ["root", "model"])
def test_code_in_a_file_never_runs_and_the_message_says_how_to_convert(tmp_path: Path, form: str, place: str) -> None:
    path, canary = tmp_path / "evil.pth", Canary(tmp_path / "canary")
    write(path, canary if place == "root" else {"model": canary}, form)
    with pytest.raises(CheckpointError, match="evil.pth .*refused; if you trust .*torch.save") as caught:
        load_checkpoint(path)
    assert os.listdir(tmp_path) == ["evil.pth"]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_a_whole_pickled_module_is_refused_with_the_reason(tmp_path: Path, form: str) -> None:
    write(tmp_path / "module.pth", nn.Linear(2, 2), form)
    with pytest.raises(
        CheckpointError, match=r"a whole pickled module, not weights \(torch.nn.modules.linear.Linear\)"
    ):
        load_checkpoint(tmp_path / "module.pth")


def test_the_way_to_convert_works(tmp_path: Path) -> None:
    old, new = tmp_path / "old.pth", tmp_path / "new.pth"
    for content in (nn.Linear(2, 2), {"model": nn.Linear(2, 2).state_dict(), "metric": np.float64(0.5)}):
        torch.save(content, old)
        with pytest.raises(CheckpointError, match="refused") as caught:
            load_checkpoint(old)
        _, read, _, save, _ = str(caught.value).split("`")
        exec(f"{read}\n{save}", {"torch": torch, "OLD": old, "NEW": new})
        assert sorted(load_checkpoint(new)) == ["bias", "weight"]


def test_a_file_cut_anywhere_is_one_error_that_names_it(tmp_path: Path) -> None:
    for form in ("zip", "legacy"):
        path = tmp_path / f"{form}.pth"
        write(path, {"weight": torch.ones(500), "iteration": 3}, form)
        whole = path.read_bytes()
        assert load_checkpoint(path)["iteration"] == 3
        for length in [*range(0, len(whole), 97), len(whole) - 1]:
            path.write_bytes(whole[:length])
            # Where the old format ends in the middle of a name, the rest of that name looks like a foreign object's.
            with pytest.raises(CheckpointError, match=f"{form}.pth .*(use another checkpoint|refused)"):
                load_checkpoint(path)


@pytest.mark.parametrize("content", [b"", b"hello world", b"\xff\xd8\xff\xe0" + bytes(range(256)), b"\0" * 4096])
def test_foreign_files_are_errors_that_name_them(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.pth"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="foreign.pth .*use another checkpoint"):
        load_checkpoint(path)


def test_what_is_no_checkpoint_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint at .*absent.pth"):
        load_checkpoint(tmp_path / "absent.pth")
    with pytest.raises(CheckpointError, match="is a folder; expected a checkpoint file"):
        load_checkpoint(tmp_path)
    torch.save(torch.zeros(2), tmp_path / "tensor.pth")
    with pytest.raises(CheckpointError, match="tensor.pth holds a Tensor; expected a dict"):
        load_checkpoint(tmp_path / "tensor.pth")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_said(tmp_path: Path) -> None:
    path = tmp_path / "secret.pth"
    torch.save({}, path)
    path.chmod(0)
    with pytest.raises(CheckpointError, match="secret.pth cannot be read: Permission denied"):
        load_checkpoint(path)
