from __future__ import annotations

import os
import time

import pytest

from fastreid_lite.utils import comm
from tests.processes import run_processes


def who(greeting: str) -> tuple[str, int, int, str]:
    return greeting, comm.get_rank(), comm.get_world_size(), os.environ["OMP_NUM_THREADS"]


def fail_on_one() -> None:
    if comm.get_rank() == 1:
        raise ValueError("the moon is full")
    comm.synchronize()


def sleep_on_one(seconds: float) -> None:
    if comm.get_rank() == 1:
        time.sleep(seconds)


def die_on_one() -> None:
    if comm.get_rank() == 1:
        os._exit(7)
    comm.synchronize()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def test_results_come_back_in_order_of_rank() -> None:
    assert run_processes(who, 3, "hello") == [("hello", rank, 3, "1") for rank in range(3)]


def test_the_traceback_of_the_process_that_failed_is_shown() -> None:
    start = time.monotonic()
    with pytest.raises(AssertionError, match="(?s)rank 1 failed:.*fail_on_one.*ValueError: the moon is full"):
        run_processes(fail_on_one, 2)
    assert time.monotonic() - start < 30


def test_a_process_that_hangs_is_ended_and_its_stack_is_shown() -> None:
    start = time.monotonic()
    with pytest.raises(AssertionError, match="(?s)not done after 3 s.*rank 1 was still running:.*sleep_on_one"):
        run_processes(sleep_on_one, 2, 500.0, timeout=3)
    assert time.monotonic() - start < 30


def test_a_process_that_dies_is_reported_with_its_exit_code() -> None:
    with pytest.raises(AssertionError, match="rank 1 failed:\ndied with exit code 7"):
        run_processes(die_on_one, 2)


def test_processes_see_the_environment_of_the_moment_and_leave_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTREID_LITE_TEST", "seen")
    before = dict(os.environ)
    assert run_processes(environment, 1, "FASTREID_LITE_TEST") == ["seen"]
    assert dict(os.environ) == before
