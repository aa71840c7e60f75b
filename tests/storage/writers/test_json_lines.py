from __future__ import annotations

import json
import logging
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.writers import JSONWriter


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of the file by a parser that takes strict JSON only."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text("utf-8").splitlines()]


def step(storage: EventStorage, writer: JSONWriter, iteration: int, /, **values: Any) -> None:
    storage.iter = iteration
    storage.put_scalars(**values)
    storage.publish()
    writer.write()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.json"


def test_a_line_stands_for_a_step_and_is_there_at_once(path: Path) -> None:
    writer = JSONWriter(path)
    assert not path.exists()
    with EventStorage(0) as storage:
        step(storage, writer, 0, a=1.5, b=2)
        assert read(path) == [{"iteration": 0, "a": 1.5, "b": 2.0}]
        step(storage, writer, 3, a=0.1)
        assert path.read_text() == '{"iteration": 0, "a": 1.5, "b": 2.0}\n{"iteration": 3, "a": 0.1}\n'
    writer.close()


def test_numbers_of_any_kind_give_strict_json(path: Path) -> None:
    values = {
        "nan": math.nan,
        "inf": -math.inf,
        "single": np.float32(1),
        "tensor": torch.tensor(2.5, requires_grad=True),
        "yes": True,
        "whole": 7,
        "tiny": 1e-300,
        "third": 1 / 3,
    }
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        for name, value in values.items():
            storage.put_scalar(name, value)
        storage.put_results({"Straße/行人\udc80\n": 1.0})
        storage.publish()
        writer.write()
    (line,) = read(path)
    assert line.pop("nan") is None and line.pop("inf") is None
    assert line == {
        "iteration": 0,
        "single": 1.0,
        "tensor": 2.5,
        "yes": 1.0,
        "whole": 7.0,
        "tiny": 1e-300,
        "third": 1 / 3,
        "Straße/行人\udc80\n": 1.0,
    }


def test_values_stand_under_their_own_step_in_ascending_order_and_are_written_once(path: Path) -> None:
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        storage.iter = 4
        storage.put_results({"Market1501/mAP": 10.0})
        storage.iter = 9
        storage.put_results({"Market1501/mAP": 20.0})
        storage.put_scalar("loss", 1.0)
        storage.publish()
        writer.write()
        writer.write()
        storage.put_results({"Market1501/mAP": 21.0})
        writer.write()
        writer.write()
    assert read(path) == [
        {"iteration": 4, "Market1501/mAP": 10.0},
        {"iteration": 9, "Market1501/mAP": 20.0, "loss": 1.0},
        {"iteration": 9, "Market1501/mAP": 21.0},
    ]


def test_values_of_the_end_and_of_a_part_of_a_period_are_written(path: Path) -> None:
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        for iteration in range(7):
            storage.iter = iteration
            storage.put_scalar("loss", iteration)
        storage.publish()
        writer.write()
        storage.put_results({"mAP": 50.0})
        storage.put_scalar("after_train", 1.0)
        storage.publish()
        writer.write()
        writer.close()
    assert read(path) == [{"iteration": 6, "loss": 3.0}, {"iteration": 6, "mAP": 50.0, "after_train": 1.0}]


def test_with_nothing_recorded_writing_and_closing_are_silent(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = JSONWriter(path)
    with pytest.raises(ZeroDivisionError), EventStorage(0) as storage:
        try:
            raise ZeroDivisionError
        finally:
            storage.publish()
            writer.write()
            writer.close()
    assert not path.exists() and not caplog.records


def test_a_value_named_iteration_does_not_hide_the_step(path: Path) -> None:
    writer = JSONWriter(path)
    with EventStorage(5) as storage:
        step(storage, writer, 5, iteration=99.0, a=1.0)
    assert read(path) == [{"iteration": 5, "a": 1.0}]


def test_values_may_be_handed_in(path: Path) -> None:
    writer = JSONWriter(path)
    storage = EventStorage(3)
    storage.put_results({"b": 1.0})
    storage.iter = 1
    storage.put_results({"a": 1.0})
    writer.write_values(storage.published())
    assert read(path) == [{"iteration": 1, "a": 1.0}, {"iteration": 3, "b": 1.0}]


def test_a_resumed_run_repeats_no_step(path: Path) -> None:
    """Logged every step, saved after 5, killed after 8, resumed to 10: steps 5 to 7 are done twice."""
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        for iteration in range(8):
            if iteration == 5:
                state = [storage.state_dict(), writer.state_dict()]
            step(storage, writer, iteration, loss=iteration)
    resumed = JSONWriter(path)
    with EventStorage(5) as storage:
        storage.load_state_dict(state[0])
        resumed.load_state_dict(state[1])
        assert [line["iteration"] for line in read(path)] == list(range(5))
        for iteration in range(5, 10):
            step(storage, resumed, iteration, loss=iteration)
    assert read(path) == [{"iteration": i, "loss": float(i)} for i in range(10)]


def test_a_run_saved_before_its_first_line_begins_the_file_anew(path: Path) -> None:
    writer = JSONWriter(path)
    state = writer.state_dict()
    with EventStorage(0) as storage:
        step(storage, writer, 0, a=1.0)
        writer.load_state_dict(state)
        assert not path.exists()
        step(storage, writer, 0, a=2.0)
    assert read(path)[-1] == {"iteration": 0, "a": 2.0}
    assert read(path.with_name("metrics.json.1")) == [{"iteration": 0, "a": 1.0}]


def saved_after_one_line(path: Path) -> dict[str, Any]:
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        step(storage, writer, 0, a=1.0)
    writer.close()
    return writer.state_dict()


def test_a_missing_file_is_said_and_the_log_goes_on(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = saved_after_one_line(path)
    path.unlink()
    writer = JSONWriter(path)
    writer.load_state_dict(state)
    assert "metrics.json is missing: the log goes on without the lines before this resume" in caplog.text
    with EventStorage(1) as storage:
        storage.serial = state["seen"]
        step(storage, writer, 1, a=2.0)
    assert read(path) == [{"iteration": 1, "a": 2.0}]


def test_a_file_that_lost_its_end_is_not_grown_and_its_torn_line_goes(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = saved_after_one_line(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    writer = JSONWriter(path)
    writer.load_state_dict(state)
    assert f"has {len(whole) - 5} bytes and had {len(whole)} when the checkpoint was written" in caplog.text
    with EventStorage(1) as storage:
        storage.serial = state["seen"]
        step(storage, writer, 1, a=2.0)
    assert read(path) == [{"iteration": 1, "a": 2.0}]


def test_a_file_of_another_run_is_moved_aside_and_not_cut(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = saved_after_one_line(path)
    other = '{"iteration": 0, "a": 9.0}\n{"iteration": 1, "a": 9.0}\n'
    path.write_text(other)
    JSONWriter(path).load_state_dict(state)
    assert "is not the log of this checkpoint: moved to " in caplog.text
    assert path.with_name("metrics.json.1").read_text() == other
    assert not path.exists()


def test_starting_anew_moves_old_files_aside_and_deletes_none(path: Path) -> None:
    assert JSONWriter(path).start_anew() is None
    for number in (1, 2, 3):
        writer = JSONWriter(path)
        with EventStorage(0) as storage:
            step(storage, writer, number, a=1.0)
            assert writer.start_anew() == path.with_name(f"metrics.json.{number}")
            step(storage, writer, 10 * number, a=1.0)
    assert read(path) == [{"iteration": 30, "a": 1.0}]
    assert [read(path.with_name(f"metrics.json.{n}"))[-1]["iteration"] for n in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"iteration": 0, "a": 1.0}\n{"iteration": 1, "a"', '{"iteration": 0, "a": 1.0}\n'),
        ('{"iter', ""),
        ('{"iteration": 0, "a": 1.0}', '{"iteration": 0, "a": 1.0}\n'),
        ("notes of mine", "notes of mine\n"),
    ],
)
def test_a_new_line_never_joins_an_unfinished_one(path: Path, before: str, after: str) -> None:
    path.write_text(before)
    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        step(storage, writer, 5, a=2.0)
    assert path.read_text() == after + '{"iteration": 5, "a": 2.0}\n'


def test_a_removed_folder_costs_one_warning_and_the_log_comes_back_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    writer = JSONWriter(folder / "metrics.json")
    with EventStorage(0) as storage:
        step(storage, writer, 0, a=1.0)
        shutil.rmtree(folder)
        for iteration in (1, 2):
            step(storage, writer, iteration, a=1.0)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert f"cannot write {folder / 'metrics.json'}: No such file or directory; training goes on" in caplog.text
        assert writer.state_dict()["length"] == 0
        folder.mkdir()
        step(storage, writer, 3, a=1.0)
    assert read(folder / "metrics.json") == [{"iteration": 3, "a": 1.0}]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full here")
def test_a_full_disk_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    writer = JSONWriter("/dev/full")
    writer._mended = True
    with EventStorage(0) as storage:
        for iteration in (0, 1):
            step(storage, writer, iteration, a=1.0)
    assert len(caplog.records) == 1
    assert "cannot write /dev/full: No space left on device; training goes on" in caplog.text
    writer.close()


def test_a_line_that_could_only_be_written_in_part_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole_write, calls = os.write, 0

    def write_half(file: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(28, "No space left on device")
        return whole_write(file, data[:10])

    writer = JSONWriter(path)
    with EventStorage(0) as storage:
        step(storage, writer, 0, a=1.0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write_half)
            step(storage, writer, 1, a=1.0)
        assert read(path) == [{"iteration": 0, "a": 1.0}]
        step(storage, writer, 2, a=1.0)
    assert [line["iteration"] for line in read(path)] == [0, 2]
    assert len(caplog.records) == 1


def test_a_place_where_no_file_can_be_is_refused_at_construction(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="json_file is .*, a folder: give the name of a file in it"):
        JSONWriter(tmp_path)
    with pytest.raises(FileNotFoundError, match="but there is no folder '.*nowhere': create it first"):
        JSONWriter(tmp_path / "nowhere" / "metrics.json")
