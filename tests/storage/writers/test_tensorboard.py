from __future__ import annotations

import importlib.util
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.writers import TensorboardXWriter


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    # It logs that it purges what a resumed run does again, which is what is wanted.
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def step(storage: EventStorage, writer: TensorboardXWriter, iteration: int, **values: Any) -> None:
    storage.iter = iteration
    storage.put_scalars(**values)
    storage.publish()
    writer.write()


def test_what_is_published_can_be_read_from_the_event_file(tmp_path: Path) -> None:
    writer = TensorboardXWriter(tmp_path / "events")
    assert not (tmp_path / "events").exists()
    with EventStorage(0) as storage:
        writer.write()
        assert not (tmp_path / "events").exists()
        for iteration in range(3):
            step(storage, writer, iteration, total_loss=iteration + 0.5, bad=math.nan)
        storage.put_results({"Market1501/mAP": 1.0})
        storage.iter = 7
        storage.put_results({"Market1501/mAP": 2.0})
        writer.write()
        writer.close()
    assert scalars(tmp_path / "events", "total_loss") == [(0, 0.5), (1, 1.5), (2, 2.5)]
    assert scalars(tmp_path / "events", "Market1501/mAP") == [(2, 1.0), (7, 2.0)]
    assert all(math.isnan(value) for _, value in scalars(tmp_path / "events", "bad"))


def test_steps_that_a_resumed_run_does_again_are_hidden(tmp_path: Path) -> None:
    writer = TensorboardXWriter(tmp_path)
    with EventStorage(0) as storage:
        for iteration in range(8):
            if iteration == 5:
                state = [storage.state_dict(), writer.state_dict()]
            step(storage, writer, iteration, loss=float(iteration))
        writer.close()
    resumed = TensorboardXWriter(tmp_path)
    with EventStorage(5) as storage:
        storage.load_state_dict(state[0])
        resumed.load_state_dict(state[1])
        for iteration in range(5, 10):
            step(storage, resumed, iteration, loss=10.0 + iteration)
        resumed.close()
    assert scalars(tmp_path, "loss") == [(i, float(i) if i < 5 else 10.0 + i) for i in range(10)]


def test_values_may_be_handed_in_and_the_file_opens_again_after_closing(tmp_path: Path) -> None:
    writer = TensorboardXWriter(tmp_path)
    storage = EventStorage(3)
    storage.put_results({"a": 1.0})
    writer.write_values(storage.published())
    writer.close()
    writer.close()
    assert scalars(tmp_path, "a") == [(3, 1.0)]


def test_without_the_package_the_message_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs the package tensorboard.*pip install 'fastreid_lite\[tensorboard\]'"):
        TensorboardXWriter(tmp_path)


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "taken").write_text("a file")
    writer = TensorboardXWriter(tmp_path / "taken" / "events")
    with EventStorage(0) as storage:
        for iteration in range(2):
            step(storage, writer, iteration, a=1.0)
        writer.close()
    assert len(caplog.records) == 1
    assert "cannot write events into" in caplog.text and "training goes on without TensorBoard" in caplog.text


def test_a_flush_period_that_is_not_positive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="flush_secs is 0, expected a positive number of seconds"):
        TensorboardXWriter(tmp_path, flush_secs=0)
