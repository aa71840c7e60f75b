from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fastreid_lite.data.datasets.generated_folder import MANIFEST, GeneratedFolder


def generated(folder: Path, **settings: int) -> GeneratedFolder:
    return GeneratedFolder(
        folder, writer="Toy", settings=settings or {"SEED": 0}, files=["a/1.txt", "a/2.txt"], config_key="TOY.FOLDER"
    )


def write(folder: Path) -> None:
    (folder / "a").mkdir()
    for name in ("1.txt", "2.txt"):
        (folder / "a" / name).write_text(name, encoding="utf-8")


def refuse(folder: Path) -> None:
    raise AssertionError("written though it was there")


def test_files_are_written_once_with_a_manifest(tmp_path: Path) -> None:
    toy = generated(tmp_path / "deep" / "toy")
    assert not toy.is_complete()
    toy.ensure(write)
    toy.ensure(refuse)
    manifest = json.loads((tmp_path / "deep" / "toy" / MANIFEST).read_text(encoding="utf-8"))
    assert manifest == {"writer": "Toy", "settings": {"SEED": 0}, "files": 2, "bytes": 10}


def test_a_complete_folder_needs_no_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated(tmp_path / "toy").ensure(write)
    monkeypatch.setattr(Path, "mkdir", lambda *args, **kwargs: refuse(tmp_path))
    generated(tmp_path / "toy").ensure(refuse)


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write(folder)
        raise RuntimeError("no more ink")

    with pytest.raises(RuntimeError, match="no more ink"):
        generated(tmp_path / "toy").ensure(fail)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    generated(tmp_path / "toy").ensure(write)


def test_an_incomplete_folder_of_ours_is_written_anew(tmp_path: Path) -> None:
    toy = generated(tmp_path / "toy")
    toy.ensure(write)
    (tmp_path / "toy" / "a" / "1.txt").unlink()
    assert not toy.is_complete()
    toy.ensure(write)
    assert toy.is_complete()


def test_leftovers_of_other_folders_stay(tmp_path: Path) -> None:
    for name in (".toy.writing-12", ".other.writing-12", "toy.writing-12"):
        (tmp_path / name).mkdir()
    generated(tmp_path / "toy").ensure(write)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        ".other.writing-12",
        "toy",
        "toy.writing-12",
    ]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    generated(tmp_path / "toy").ensure(write)
    assert generated(tmp_path / "toy").is_complete()


def stranger(folder: Path) -> None:
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "mine.txt").touch()


def stranger_among_ours(folder: Path) -> None:
    generated(folder).ensure(write)
    (folder / "a" / "2.txt").unlink()
    (folder / "a" / "mine.txt").touch()


def ours_by_name_alone(folder: Path) -> None:
    generated(folder).ensure(write)
    (folder / MANIFEST).unlink()


@pytest.mark.parametrize("fill", [stranger, stranger_among_ours, ours_by_name_alone])
def test_files_that_we_did_not_write_are_never_removed(tmp_path: Path, fill: Callable[[Path], None]) -> None:
    fill(tmp_path / "toy")
    before = sorted(path.name for path in (tmp_path / "toy").rglob("*"))
    with pytest.raises(ValueError, match=r"toy' \(TOY.FOLDER\) holds files that Toy did not write, the first 'a/"):
        generated(tmp_path / "toy").ensure(write)
    assert sorted(path.name for path in (tmp_path / "toy").rglob("*")) == before


def test_files_of_other_settings_are_refused(tmp_path: Path) -> None:
    generated(tmp_path / "toy", SEED=1).ensure(write)
    with pytest.raises(ValueError, match=r"was written by Toy with other settings \(SEED 1, wanted 0\); name another"):
        generated(tmp_path / "toy").ensure(write)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"Toy cannot write into '.*toy': .*name a folder that can be written \(TOY"):
        generated(tmp_path / "file" / "toy").ensure(write)


def test_where_the_file_system_has_no_locks_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*arguments: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".toy.writing-12").mkdir()  # another process may be at it
    generated(tmp_path / "toy").ensure(write)
    assert generated(tmp_path / "toy").is_complete() and (tmp_path / ".toy.writing-12").is_dir()


def test_the_slower_of_two_writers_without_locks_keeps_the_work_of_the_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(folder: Path) -> None:
        write(folder)
        generated(tmp_path / "toy").ensure(write)

    monkeypatch.setattr("fastreid_lite.data.datasets.generated_folder.fcntl", None)
    generated(tmp_path / "toy").ensure(overtaken)
    assert generated(tmp_path / "toy").is_complete()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["toy"]


def test_no_temporary_names_are_left(tmp_path: Path) -> None:
    generated(tmp_path / "toy").ensure(write)
    assert sorted(os.listdir(tmp_path)) == [".toy.lock", "toy"]
