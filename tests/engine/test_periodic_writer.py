"""Numbers to logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine.hooks import PeriodicCheckpointer, PeriodicWriter
from fastreid_lite.engine.hooks.base import HookBase
from fastreid_lite.engine.triggers import At
from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.writers import EventWriter, JSONWriter
from tests.engine.toys import CountingTrainer, Turn, toy_trainer


class Lines(EventWriter):
    """Keeps (iteration of the loss, loss) of each line, and how often it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, tuple[float, int]]] = []
        self.closed = 0

    def write_values(self, values: Any) -> None:
        self.lines.append({name: (value.value, value.iteration) for name, value in values.items()})

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        (3, [(1.0, 2), (4.0, 5), (6.0, 6)]),
        (7, [(3.0, 6)]),
        (20, [(3.0, 6)]),
        (0, [(3.0, 6)]),
        (-1, []),
        (At(2), [(0.5, 1), (4.0, 6)]),
    ],
)
def test_every_step_counts_once_in_one_line(period: Any, expected: list[tuple[float, int]]) -> None:
    trainer, writer = CountingTrainer(), Lines()
    trainer.register_hooks([PeriodicWriter([writer], period)])
    trainer.train(0, 7)
    assert [line["loss"] for line in writer.lines] == expected
    assert writer.closed == 1


def test_log_writers_come_last_at_a_boundary_whatever_the_order_of_registration() -> None:
    trainer, writer = CountingTrainer(), Lines()
    puts = Turn("puts", At(2), [], priority=1, act=lambda t: t.storage.put_results({"score": 5.0}))
    trainer.register_hooks([PeriodicWriter([writer], 2), puts])
    trainer.train(0, 4)
    assert writer.lines[0]["score"] == (5.0, 1)


def test_a_value_put_after_the_line_of_its_step_is_in_the_next_one() -> None:
    class PutsLate(HookBase):
        trigger = At(2)
        priority = -5

        def __call__(self, trainer: Any) -> None:
            trainer.storage.put_scalar("late", 7.0)

    trainer, writer = CountingTrainer(), Lines()
    trainer.register_hooks([PeriodicWriter([writer], 2), PutsLate()])
    trainer.train(0, 6)
    assert [line.get("late") for line in writer.lines] == [None, (7.0, 1), None]


def test_logged_steps_never_go_back_and_a_resumed_log_has_no_step_twice(tmp_path: Path) -> None:
    def make() -> Any:
        own = toy_trainer()
        own.register_hooks(
            [
                PeriodicWriter([JSONWriter(tmp_path / "metrics.json")], 3),
                PeriodicCheckpointer(Checkpointer(tmp_path), 5),
            ]
        )
        return own

    class Dies(HookBase):
        def before_step(self) -> None:
            if self.trainer.iter == 8:
                raise KeyboardInterrupt

    first = make()
    first.register_hooks([Dies()])
    with pytest.raises(KeyboardInterrupt):
        first.train(0, 12)
    choice = Checkpointer(tmp_path).find_resume()
    assert choice is not None
    second = make()
    second.load_state_dict(choice.state)
    second.train(second.iter, 12)
    import json

    found = [json.loads(line) for line in (tmp_path / "metrics.json").read_text().splitlines()]
    assert [line["iteration"] for line in found] == [2, 5, 8, 11]
    whole = toy_trainer()
    writer = Lines()
    whole.register_hooks([PeriodicWriter([writer], 3)])
    whole.train(0, 12)
    assert [line["total_loss"] for line in found] == [line["total_loss"][0] for line in writer.lines]


def test_a_writer_is_closed_once_also_where_the_run_fails() -> None:
    class Fails(HookBase):
        def after_step(self) -> None:
            raise OSError("gone")

    trainer, writer = CountingTrainer(), Lines()
    trainer.register_hooks([PeriodicWriter([writer], 5), Fails()])
    with pytest.raises(OSError, match="gone"):
        trainer.train(0, 3)
    assert writer.closed == 1
    assert writer.lines == [{"loss": (0.0, 0)}]


def test_the_logs_of_another_run_are_moved_aside(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("old\n")
    PeriodicWriter([JSONWriter(tmp_path / "metrics.json")]).start_anew()
    assert (tmp_path / "metrics.json.1").read_text() == "old\n"


def test_the_storage_is_the_one_of_the_run() -> None:
    assert isinstance(CountingTrainer().storage, EventStorage)
