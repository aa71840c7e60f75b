from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.writers import CommonMetricPrinter, JSONWriter

TIMES = {"time": 0.0312, "data_time": 0.0004, "hook_time": 2.1e-5, "images_per_second": 812.4}


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def put_step(storage: EventStorage, iteration: int, **losses: float) -> None:
    storage.iter = iteration
    storage.put_scalars(**losses, **TIMES)
    storage.put_scalars(lr=3.5e-4, eta_seconds=83.4, epoch=3, peak_memory=1234.4, smoothing_hint=False)
    storage.publish()


def test_the_line_says_all_that_a_reader_wants(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(600)
    with EventStorage(0) as storage:
        put_step(storage, 199, total_loss=5.1234, loss_cls=4.9)
        writer.write()
    assert log.messages == [
        "eta 0:01:23  iter 199/600  epoch 3  total_loss 5.123  loss_cls 4.900  time 0.0312  data_time 0.0004  "
        "hook_time 2.1e-05  lr 3.50e-04  img/s 812  mem 1234M"
    ]
    assert log.records[0].name == "fastreid_lite.storage.writers.console"
    assert log.records[0].levelno == logging.INFO


def test_lines_stand_under_each_other(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(600)
    with EventStorage(0) as storage:
        for iteration, loss in ((99, 12345.0), (199, 5.0), (299, 0.000012)):
            put_step(storage, iteration, total_loss=loss, loss_cls=1.0)
            writer.write()
    places = [[line.index(word) for word in ("iter", "total_loss", "loss_cls", "lr", "mem")] for line in log.messages]
    assert places[0] == places[1] == places[2]


def test_the_total_comes_first_among_the_losses(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(10)
    with EventStorage(0) as storage:
        storage.put_scalars(Loss_b=1.0, loss_a=2.0, total_loss=3.0)
        storage.publish()
        writer.write()
    assert log.messages == ["iter  0/10  total_loss 3.000  Loss_b 1.000  loss_a 2.000"]


def test_results_are_printed_as_they_are_on_a_line_of_their_own(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(100)
    with EventStorage(0) as storage:
        for iteration, score in enumerate((0.1, 0.9)):
            storage.iter = iteration
            storage.put_scalar("mAP", score, smoothing_hint=False)
        put_step(storage, 4, loss=3.0)
        storage.put_results({"Market1501/mAP": 85.123})
        writer.write()
    assert len(log.messages) == 3
    assert log.messages[0].startswith("eta 0:01:23  iter   4/100  epoch 3  loss 3.000")
    assert log.messages[1:] == ["iter   1/100  mAP 0.9", "iter   4/100  Market1501/mAP 85.12"]


def test_a_result_after_the_last_step_does_not_repeat_the_line_of_the_step(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(5)
    with EventStorage(0) as storage:
        put_step(storage, 4, total_loss=1.0)
        writer.write()
        storage.put_results({"Market1501/mAP": 50.0})
        writer.write()
        writer.write()
        writer.close()
    assert len(log.messages) == 2
    assert log.messages[1] == "iter 4/5  Market1501/mAP 50"


def test_numbers_of_neither_kind_are_left_to_other_writers(log: pytest.LogCaptureFixture) -> None:
    writer = CommonMetricPrinter(5)
    with EventStorage(0) as storage:
        storage.put_scalar("gradient_norm", 1.0)
        storage.publish()
        writer.write()
    assert log.messages == []


def test_the_console_and_the_file_say_the_same(log: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    printer, writer = CommonMetricPrinter(100), JSONWriter(tmp_path / "metrics.json")
    with EventStorage(0) as storage:
        for iteration in range(5):
            storage.iter = iteration
            storage.put_scalar("loss", iteration + 1)
        storage.publish()
        printer.write()
        writer.write()
    line = json.loads((tmp_path / "metrics.json").read_text())
    assert line == {"iteration": 4, "loss": 3.0}
    assert log.messages == ["iter   4/100  loss 3.000"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0:00:00"), (3600.0, "1:00:00"), (200_000.0, "2 days, 7:33:20"), (math.nan, "unknown"), (-1.0, "unknown")]
    + [(math.inf, "unknown"), (1e30, "unknown")],
)
def test_any_time_left_can_be_printed(log: pytest.LogCaptureFixture, seconds: float, text: str) -> None:
    writer = CommonMetricPrinter()
    with EventStorage(7) as storage:
        storage.put_scalar("eta_seconds", seconds, smoothing_hint=False)
        storage.put_scalar("loss", math.nan)
        storage.publish()
        writer.write()
    assert log.messages == [f"eta {text}  iter 7  loss nan"]


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="max_iter is -1, expected the number of steps"):
        CommonMetricPrinter(-1)


def test_state_goes_round(log: pytest.LogCaptureFixture) -> None:
    first, second = CommonMetricPrinter(9), CommonMetricPrinter(9)
    with EventStorage(0) as storage:
        put_step(storage, 4, total_loss=1.0)
        first.write()
        state: Any = first.state_dict()
        second.load_state_dict(state)
        second.write()
    assert len(log.messages) == 1
