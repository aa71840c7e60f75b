"""Where batches come from: loaders with and without a length, that end early, never, or once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from fastreid_lite.engine.feed import Feed
from tests.engine.toys import CountingTrainer, PositionedLoader, Recorder, toy_batch, toy_trainer


class Unsized:
    """Goes through ``lengths[i]`` batches in round i (the last length for all further ones); has no length."""

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths
        self.round = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        this, self.round = self.round, self.round + 1
        for batch in range(self.lengths[min(this, len(self.lengths) - 1)]):
            yield this, batch


def epochs_of(recorder: Recorder) -> list[tuple[str, int]]:
    return [entry for entry in recorder.seen if entry[0].endswith("epoch")]


def run(loader: Any, steps: int, **options: Any) -> tuple[CountingTrainer, Recorder]:
    trainer, recorder = CountingTrainer(loader, **options), Recorder()
    trainer.register_hooks([recorder])
    trainer.train(0, steps)
    return trainer, recorder


def test_a_list_of_three_batches_is_started_again_until_ten_steps_are_done() -> None:
    trainer = toy_trainer([toy_batch(0, batch) for batch in range(3)])
    trainer.register_hooks([recorder := Recorder()])
    trainer.train(0, 10)
    assert trainer.iter == 10
    assert [step for point, step in recorder.seen if point == "after_step"] == list(range(10))


def test_a_generator_that_can_be_gone_through_only_once_is_a_named_error_where_it_runs_dry() -> None:
    trainer = toy_trainer(toy_batch(0, batch) for batch in range(3))
    trainer.register_hooks([recorder := Recorder()])
    with pytest.raises(ValueError, match=r"\(generator\) ran dry after 3 batches and cannot be gone through again"):
        trainer.train(0, 10)
    assert trainer.iter == 3
    assert trainer.outcome == "failed"
    assert recorder.seen[-1] == ("after_train", 3)


def test_a_generator_with_exactly_as_many_batches_as_steps_is_enough() -> None:
    trainer, _ = run((batch for batch in range(3)), 3)
    assert trainer.batches == [[0], [1], [2]]


def test_an_empty_list_is_refused_before_training_and_an_empty_generator_at_the_first_fetch() -> None:
    with pytest.raises(ValueError, match=r"the data loader \(list\) is empty: it has no batch to train on"):
        toy_trainer([])
    with pytest.raises(ValueError, match=r"the data loader \(generator\) is empty: it gave no batch"):
        toy_trainer(batch for batch in ()).train(0, 10)


def test_an_epoch_is_the_length_of_the_loader() -> None:
    trainer, recorder = run([0, 1, 2], 7)
    assert trainer.epoch_length == 3
    assert epochs_of(recorder) == [
        ("before_epoch", 0), ("after_epoch", 2), ("before_epoch", 3), ("after_epoch", 5), ("before_epoch", 6)
    ]  # fmt: skip


def test_the_first_end_of_a_loader_without_a_length_sets_it() -> None:
    trainer, recorder = run(Unsized(3), 7)
    assert trainer.epoch_length == 3
    assert trainer.batches == [[divmod(step, 3)] for step in range(7)]
    assert epochs_of(recorder)[:4] == [("before_epoch", 0), ("after_epoch", 2), ("before_epoch", 3), ("after_epoch", 5)]


def test_an_epoch_length_given_counts_for_a_loader_without_one() -> None:
    trainer, recorder = run(Unsized(3), 5, epoch_length=2)
    assert trainer.batches == [[divmod(step, 3)] for step in range(5)]
    assert [step for point, step in epochs_of(recorder) if point == "after_epoch"] == [1, 3]


def test_an_endless_loader_or_none_makes_the_run_one_epoch() -> None:
    _, endless = run(itertools.count(), 6)
    assert epochs_of(endless) == [("before_epoch", 0)]
    trainer, without = run(None, 6)
    assert epochs_of(without) == [("before_epoch", 0), ("after_epoch", 5)]
    assert trainer.epoch_length == 6


@pytest.mark.parametrize(("batches", "together"), [(7, 3), (6, 3), (5, 1), (2, 4)])
def test_the_last_window_of_an_epoch_is_short_and_every_batch_is_used(batches: int, together: int) -> None:
    windows = [list(range(first, min(first + together, batches))) for first in range(0, batches, together)]
    sized, recorder = run(list(range(batches)), 2 * len(windows), accumulate_steps=together)
    assert sized.epoch_length == len(windows)
    assert sized.batches == windows * 2
    assert [step for point, step in recorder.seen if point == "after_epoch"] == [len(windows) - 1, 2 * len(windows) - 1]
    unsized, _ = run(Unsized(batches), 2 * len(windows), accumulate_steps=together)
    assert [[batch for _, batch in window] for window in unsized.batches] == windows * 2


@pytest.mark.parametrize("epoch_length", [None, 2, 5, 8])
@pytest.mark.parametrize("together", [1, 2])
def test_a_resumed_run_gets_the_batches_of_the_uninterrupted_one(epoch_length: int | None, together: int) -> None:
    options: dict[str, Any] = {"epoch_length": epoch_length, "accumulate_steps": together}
    whole = CountingTrainer(loader := PositionedLoader(5), **options)
    whole.train(0, 20)
    for done in range(1, 20):
        first = CountingTrainer(PositionedLoader(5), **options)
        first.train(0, done)
        second = CountingTrainer(rest := PositionedLoader(5), **options)
        second.load_state_dict(first.state_dict())
        second.train(second.iter, 20)
        assert rest.served == loader.served[len(loader.served) - len(rest.served) :]
        assert len(rest.served) == sum(len(window) for window in whole.batches[done:])


@pytest.mark.parametrize("cut_at", [0, 1, 3])
def test_a_cut_epoch_fires_after_epoch_and_the_next_begins_at_position_0(cut_at: int) -> None:
    trainer, loader = None, PositionedLoader(4)
    trainer = CountingTrainer(loader)
    recorder = _cutting(cut_at)
    trainer.register_hooks([recorder])
    trainer.train(0, cut_at + 6)
    assert [step for point, step in recorder.seen if point == "after_epoch"] == [cut_at, cut_at + 4]
    first = [(0, batch) for batch in range(cut_at + 1)]
    assert loader.served == [*first, *((1, batch) for batch in range(4)), (2, 0)]


def _cutting(at: int) -> Recorder:
    recorder = Recorder()
    recorder.before_step = lambda: recorder.trainer.iter == at and recorder.trainer.terminate_epoch()  # type: ignore
    return recorder


def test_a_run_resumed_after_a_cut_epoch_is_where_the_uninterrupted_one_is() -> None:
    whole = CountingTrainer(loader := PositionedLoader(4))
    whole.register_hooks([_cutting(1)])
    whole.train(0, 9)
    for done in range(1, 9):
        first = CountingTrainer(PositionedLoader(4))
        first.register_hooks([_cutting(1)])
        first.train(0, done)
        second = CountingTrainer(rest := PositionedLoader(4))
        second.register_hooks([recorder := _cutting(1)])
        second.load_state_dict(first.state_dict())
        second.train(second.iter, 9)
        assert rest.served == loader.served[done:]
        assert [step for point, step in recorder.seen if point == "after_epoch"] == [s for s in (1, 5) if s >= done]


def test_an_epoch_can_be_cut_where_there_is_no_loader() -> None:
    trainer = CountingTrainer()
    trainer.register_hooks([recorder := _cutting(2)])
    trainer.train(0, 5)
    assert epochs_of(recorder) == [("before_epoch", 0), ("after_epoch", 2), ("before_epoch", 3)]


def test_the_learnt_length_of_an_epoch_is_resumed() -> None:
    first = CountingTrainer(Unsized(3))
    first.train(0, 4)
    second = CountingTrainer(Unsized(3))
    second.load_state_dict(first.state_dict())
    second.train(second.iter, 5)
    assert second.epoch_length == 3


class Remembers:
    """A foreign loader: it saves its own state."""

    def __init__(self, batches: int = 4) -> None:
        self.batches = batches
        self.next = 0

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[int]:
        while True:
            self.next += 1
            yield self.next - 1
            if self.next % self.batches == 0:
                return

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


class RemembersUnsized(Remembers):
    __len__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Remembers, RemembersUnsized])
@pytest.mark.parametrize("done", [1, 3, 4, 6])
def test_a_foreign_loader_with_a_state_goes_on_from_it(kind: type[Remembers], done: int) -> None:
    first = CountingTrainer(kind())
    first.train(0, done)
    second = CountingTrainer(kind())
    second.load_state_dict(first.state_dict())
    second.train(second.iter, 10)
    assert [batch for window in second.batches for batch in window] == list(range(done, 10))


def test_a_foreign_loader_without_one_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    first = CountingTrainer([0, 1, 2])
    first.train(0, 4)
    second = CountingTrainer([0, 1, 2])
    second.load_state_dict(first.state_dict())
    second.train(second.iter, 9)
    assert [
        record.getMessage() for record in caplog.records if "neither set_position nor state_dict" in record.msg
    ] == [
        "the data loader (list) has neither set_position nor state_dict: it starts from its beginning, so this run "
        "will not see the batches of the run that it resumes"
    ]


def test_a_sampler_that_shuffles_by_epoch_is_told_the_epoch() -> None:
    class Sampler:
        def __init__(self) -> None:
            self.epochs: list[int] = []

        def set_epoch(self, epoch: int) -> None:
            self.epochs.append(epoch)

    class Loader(list):  # type: ignore[type-arg]
        sampler = Sampler()

    loader = Loader([0, 1])
    CountingTrainer(loader).train(0, 6)
    assert loader.sampler.epochs == [0, 1, 2]


def test_what_cannot_feed_a_loop_is_refused() -> None:
    with pytest.raises(TypeError, match="the data loader is a int, expected an iterable of batches"):
        Feed(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="accumulate_steps is 0, expected a whole number >= 1"):
        Feed([1], accumulate_steps=0)
    with pytest.raises(ValueError, match="epoch_length is 0, expected a whole number >= 1"):
        Feed([1], epoch_length=0)
    with pytest.raises(RuntimeError, match=r"CountingTrainer has no data loader: call set_loader\(loader\) first"):
        CountingTrainer().next_batch()


def test_waiting_for_the_loader_is_measured() -> None:
    import time

    def slow() -> Iterator[int]:
        for batch in range(3):
            time.sleep(0.02)
            yield batch

    trainer, _ = run(slow(), 3)
    assert 0.055 < trainer.data_time < 0.5


def test_nothing_is_fetched_before_the_first_step() -> None:
    loader = PositionedLoader()
    toy_trainer(loader).train(0, 0)
    assert loader.served == []
