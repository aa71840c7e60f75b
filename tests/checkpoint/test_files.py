from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from fastreid_lite.checkpoint import atomic_path, atomic_torch_save, atomic_write_bytes, atomic_write_text
from fastreid_lite.checkpoint.files import remove_leftovers

WRITERS: list[Callable[[Path], None]] = [
    lambda path: atomic_write_bytes(path, b"new"),
    lambda path: atomic_write_text(path, "new"),
    lambda path: atomic_torch_save({"new": torch.ones(2)}, path),
]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to let a file grow over ``size`` bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def failing(code: int) -> Callable[..., Any]:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("write", WRITERS)
def test_a_written_file_is_whole_and_nothing_is_left_beside_it(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    write(path)
    assert path.read_bytes() != b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_text_is_utf8_and_bytes_are_bytes(tmp_path: Path) -> None:
    atomic_write_text(tmp_path / "text", "Zürich\n")
    atomic_write_bytes(tmp_path / "bytes", b"\0\xff")
    assert (tmp_path / "text").read_bytes() == "Zürich\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\0\xff"


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_before_the_rename_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None], call: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))
    with pytest.raises(OSError, match=f"could not write {path}: No space left on device; what was there.*unchanged"):
        write(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_kill_in_the_middle_leaves_the_old_file_and_a_hidden_one_that_is_cleared_later(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    program = (
        "import os; from fastreid_lite.checkpoint import atomic_write_bytes; os.replace = lambda *_: os._exit(9); "
        f"atomic_write_bytes({str(path)!r}, b'new')"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 9
    assert path.read_bytes() == b"old"
    (left,) = [name for name in os.listdir(tmp_path) if name != "file"]
    assert left.startswith(".file.") and left.endswith(".fastreid_lite.tmp")
    assert remove_leftovers(tmp_path) == [tmp_path / left]
    assert os.listdir(tmp_path) == ["file"]


def test_leftovers_of_this_process_and_files_of_others_stay(tmp_path: Path) -> None:
    for name in (f".file.{os.getpid()}.fastreid_lite.tmp", ".other.tmp", "file.tmp"):
        (tmp_path / name).touch()
    assert remove_leftovers(tmp_path) == []
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.parametrize("write", WRITERS)
def test_a_missing_folder_is_named(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "absent" / "file"
    with pytest.raises(OSError, match=f"could not write {path}: No such file or directory; nothing was left there"):
        write(path)


@pytest.mark.parametrize("tensors", [1, 50])
def test_a_full_disk_is_an_error_that_leaves_the_old_checkpoint(tmp_path: Path, tensors: int) -> None:
    path = tmp_path / "model.pth"
    atomic_torch_save({"old": 1}, path)
    old = path.read_bytes()
    state = {str(number): torch.ones(20_000) for number in range(tensors)}
    with largest_file(50_000), pytest.raises(OSError, match=f"could not write {path}: .*unchanged"):
        atomic_torch_save(state, path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["model.pth"]
    with largest_file(2), pytest.raises(OSError, match="could not write .*File too large"):
        atomic_write_bytes(path, b"many bytes")
    assert path.read_bytes() == old


def test_what_the_block_raises_comes_out_unchanged(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "file") as temporary:
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_flushed_is_said_though_the_file_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, calls = os.fsync, []

    def fail_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fail_second)
    with pytest.raises(OSError, match="file is complete, but its folder could not be flushed to the disk"):
        atomic_write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_the_data_is_flushed_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    flush, replace = os.fsync, os.replace

    def record_flush(descriptor: int) -> None:
        order.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        flush(descriptor)

    def record_replace(source: Any, target: Any) -> None:
        order.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(os, "replace", record_replace)
    atomic_torch_save({"a": 1}, tmp_path / "file")
    assert order == ["file", "rename", "folder"]
