"""Processes: started, ended, and never left behind."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from fastreid_lite.engine.launch import WorkerError, launch
from fastreid_lite.utils import comm


def write_who_i_am(folder: str) -> None:
    total = sum(comm.all_gather_object(comm.get_rank() + 1))
    Path(folder, f"{comm.get_rank()}").write_text(f"{comm.get_world_size()} {total} {os.environ['LOCAL_RANK']}")


def die(folder: str, how: str) -> None:
    Path(folder, f"pid{comm.get_rank()}").write_text(str(os.getpid()))
    comm.synchronize()
    if comm.get_rank() == 1:
        if how == "exit":
            os._exit(7)
        if how == "kill":
            os.kill(os.getpid(), 9)
        raise ValueError("rank 1 has had enough")
    time.sleep(600)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_is_this_one() -> None:
    seen: list[int] = []
    launch(lambda value: seen.append(value), 1, args=(3,))
    assert seen == [3]


@pytest.mark.slow
def test_two_launches_at_once_do_not_meet_each_other(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    threads = []
    for folder in folders:
        folder.mkdir()
        arguments = {"args": (str(folder),), "device": "cpu"}
        threads.append(threading.Thread(target=launch, args=(write_who_i_am, 2), kwargs=arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for folder in folders:
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"0": "2 3 0", "1": "2 3 1"}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        pytest.param("exit", "the process of rank 1 ended with exit code 7; the other processes were ended"),
        pytest.param("kill", "the process of rank 1 ended with SIGKILL", marks=pytest.mark.slow),
        pytest.param("raise", "the process of rank 1 ended with exit code 1", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_dies_is_named_and_ends_the_others_in_bounded_time(
    tmp_path: Path, how: str, words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastreid_lite.engine.launch._GRACE_AFTER_FAILURE", 1.0)
    start = time.monotonic()
    with pytest.raises(WorkerError, match=words):
        launch(die, 2, args=(str(tmp_path), how), device="cpu")
    assert time.monotonic() - start < 30
    assert not any(alive(int((tmp_path / f"pid{rank}").read_text())) for rank in (0, 1))
    said = capfd.readouterr().err
    assert "ending the process of rank 0" in said
    if how == "raise":
        assert "ValueError: rank 1 has had enough" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_processes": 0}, "num_processes is 0, num_machines 1, machine_rank 0: expected counts >= 1"),
        ({"num_machines": 2, "machine_rank": 2}, "num_machines 2, machine_rank 2: expected"),
        ({"num_machines": 2}, "several machines need --dist-url tcp://HOST:PORT"),
    ],
)
def test_numbers_that_do_not_go_together_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        launch(print, **options)  # type: ignore[arg-type]


def test_num_processes_under_torchrun_is_refused_and_one_process_just_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ValueError, match="--num-processes 2 under torchrun"):
        launch(print, 2)
    seen: list[int] = []
    launch(seen.append, 1, args=(5,))
    assert seen == [5]
