from __future__ import annotations

import pytest

from fastreid_lite.storage import EventStorage, Value
from fastreid_lite.storage.writers import CommonMetricPrinter, EventWriter, JSONWriter, ProgressBarWriter
from fastreid_lite.storage.writers import TensorboardXWriter as TensorBoard


class Recorder(EventWriter):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, float]] = []

    def write_values(self, values: dict[str, Value]) -> None:
        self.calls.append({name: value.value for name, value in values.items()})


def test_a_writer_gets_what_it_has_not_seen_and_nothing_where_nothing_is_new() -> None:
    writer = Recorder()
    with EventStorage(0) as storage:
        writer.write()
        storage.put_scalar("a", 1.0)
        storage.publish()
        writer.write()
        writer.write()
        storage.put_scalar("b", 2.0)
        storage.publish()
        writer.write()
    assert writer.calls == [{"a": 1.0}, {"b": 2.0}]


def test_values_come_in_order_of_their_step() -> None:
    writer = Recorder()
    with EventStorage(9) as storage:
        storage.put_results({"late": 1.0})
        storage.iter = 2
        storage.put_results({"early": 1.0})
        writer.write()
    assert list(writer.calls[0]) == ["early", "late"]


def test_a_writer_that_was_loaded_does_not_write_again_what_it_had_written() -> None:
    writer, second = Recorder(), Recorder()
    with EventStorage(0) as storage:
        storage.put_results({"a": 1.0})
        writer.write()
        second.load_state_dict(writer.state_dict())
        second.write()
    assert second.calls == []


def test_outside_a_run_writing_says_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match="no EventStorage is active"):
        Recorder().write()


def test_a_writer_must_define_how_it_writes() -> None:
    with EventStorage(0) as storage:
        storage.put_results({"a": 1.0})
        with pytest.raises(NotImplementedError, match="EventWriter must define write_values or write"):
            EventWriter().write()


def test_all_writers_are_writers() -> None:
    for kind in (CommonMetricPrinter, JSONWriter, ProgressBarWriter, TensorBoard):
        assert issubclass(kind, EventWriter)
