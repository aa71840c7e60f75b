from __future__ import annotations

import gc
import pickle
import random
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.storage import EventStorage, get_event_storage, has_event_storage
from tests.storage.far_tensor import FarTensor


def test_outside_a_run_the_message_says_what_to_do() -> None:
    assert not has_event_storage()
    with pytest.raises(RuntimeError, match=r"no EventStorage is active.*with EventStorage\(0\):.*has_event_storage"):
        get_event_storage()


def test_a_model_that_logs_works_outside_a_run_when_it_asks_first() -> None:
    def forward() -> str:
        if has_event_storage():
            get_event_storage().put_scalar("accuracy", 0.5)
            return "logged"
        return "silent"

    assert forward() == "silent"
    with EventStorage(0) as storage:
        assert forward() == "logged"
        assert get_event_storage() is storage
        with EventStorage(0) as inner:
            assert get_event_storage() is inner
        assert get_event_storage() is storage
    assert not has_event_storage()


def test_the_storage_is_left_when_an_error_passes() -> None:
    with pytest.raises(KeyError), EventStorage(0):
        raise KeyError("x")
    assert not has_event_storage()


@pytest.mark.parametrize(
    "value",
    [1, 1.0, True, np.float32(1), np.int64(1), np.bool_(True), np.array(1.0), np.array([[1.0]]), torch.tensor(1)]
    + [torch.tensor([1.0]), torch.tensor(True), torch.tensor(1.0, dtype=torch.bfloat16)]
    + [torch.tensor(1.0, requires_grad=True)],
)
def test_every_kind_of_number_is_taken_as_a_float(value: Any) -> None:
    storage = EventStorage(0)
    storage.put_scalar("x", value)
    storage.publish()
    published = storage.published()["x"].value
    assert type(published) is float and published == 1.0


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (torch.zeros(2), ValueError, r"'loss' has shape \(2,\): a scalar was expected"),
        (torch.zeros(0), ValueError, r"'loss' has shape \(0,\): a scalar was expected"),
        (np.zeros((1, 3)), ValueError, r"'loss' has shape \(1, 3\): a scalar was expected"),
        ("1.0", TypeError, "'loss' is a str: a number or a tensor of one element was expected"),
        (None, TypeError, "'loss' is a NoneType"),
        ([1.0], TypeError, "'loss' is a list"),
    ],
)
def test_what_is_no_scalar_is_refused_by_name(value: Any, error: type[Exception], message: str) -> None:
    storage = EventStorage(0)
    with pytest.raises(error, match=message):
        storage.put_scalar("loss", value)
    with pytest.raises(error, match=message):
        storage.put_results({"loss": value})
    assert not storage.latest()


def test_a_published_number_is_the_mean_over_the_steps_since_the_last_time() -> None:
    storage = EventStorage(0)
    for step in range(5):
        storage.iter = step
        storage.put_scalar("loss", step + 1)
        storage.put_scalar("mAP", [0.1, 0.9][step % 2], smoothing_hint=False)
    assert not storage.published()
    storage.publish()
    assert storage.published()["loss"].value == 3.0
    assert storage.published()["loss"].iteration == 4
    storage.iter = 5
    storage.put_scalars(loss=10, mAP=0.9)
    storage.publish()
    assert storage.published()["loss"].value == 10.0
    assert storage.published()["mAP"].value == 0.9
    assert storage.history("loss") == [(3.0, 4), (10.0, 5)]
    assert storage.is_smoothed("loss") and not storage.is_smoothed("mAP")


def test_what_was_not_put_again_is_not_published_again() -> None:
    storage = EventStorage(0)
    storage.put_scalar("a", 1.0)
    storage.publish()
    serial = storage.serial
    storage.publish()
    assert storage.serial == serial
    assert storage.published_since(serial) == []


def test_results_are_published_at_once_and_every_publication_is_kept_for_the_writers() -> None:
    storage = EventStorage(0)
    for step, score in ((4, 0.1), (9, 0.9)):
        storage.iter = step
        storage.put_results({"Market1501/mAP": score})
    found = [(name, value.value, value.iteration) for name, value in storage.published_since(0)]
    assert found == [("Market1501/mAP", 0.1, 4), ("Market1501/mAP", 0.9, 9)]
    assert storage.published()["Market1501/mAP"].value == 0.9
    assert not storage.is_smoothed("Market1501/mAP")


def test_kinds_join_as_they_say() -> None:
    storage = EventStorage(0)
    storage.set_kind("worst", "max")
    storage.set_kind("newest", "last")
    for value in (1.0, 5.0, 2.0):
        storage.put_scalars(worst=value, newest=value, mean=value)
    storage.publish()
    assert {name: value.value for name, value in storage.published().items()} == {
        "worst": 5.0,
        "newest": 2.0,
        "mean": 8 / 3,
    }
    with pytest.raises(ValueError, match="kind of 'x' is 'median', expected one of 'mean', 'max', 'last'"):
        storage.set_kind("x", "median")


def test_a_kind_that_changes_in_mid_period_holds_from_the_next_one() -> None:
    storage = EventStorage(0)
    storage.put_scalar("x", 1.0)
    storage.local_state_dict()
    storage.set_kind("x", "last")
    storage.put_scalar("x", 3.0)
    storage.publish()
    assert storage.published()["x"].value == 2.0
    storage.put_scalars(x=1.0)
    storage.put_scalars(x=3.0)
    storage.publish()
    assert storage.published()["x"].value == 3.0


def test_name_scopes_nest_and_are_left_when_an_error_passes() -> None:
    storage = EventStorage(0)
    with pytest.raises(RuntimeError), storage.name_scope("a"):
        with storage.name_scope("b/"):
            storage.put_scalar("x", 1.0)
            storage.put_results({"y": 2.0})
        raise RuntimeError
    storage.put_scalar("x", 3.0)
    assert {name: value for name, (value, _) in storage.latest().items()} == {"a/b/x": 1.0, "a/b/y": 2.0, "x": 3.0}


def test_providers_are_asked_at_every_publication() -> None:
    storage = EventStorage(0)
    storage.on_publish(lambda: storage.put_scalar("memory", 7.0))
    storage.publish()
    storage.publish()
    assert [value for value, _ in storage.history("memory")] == [7.0, 7.0]


def test_history_of_an_unknown_name_lists_the_known_ones() -> None:
    storage = EventStorage(0)
    storage.put_results({"a": 1.0, "b": 1.0})
    with pytest.raises(KeyError, match="nothing was published under 'c'; published: a, b"):
        storage.history("c")


def test_numbers_on_a_device_are_not_read_before_publication_and_then_with_one_copy() -> None:
    storage = EventStorage(0)
    FarTensor.reads = 0
    for step in range(10):
        storage.iter = step
        storage.put_scalars(a=FarTensor.of(step), b=FarTensor.of(2.0 * step))
    assert FarTensor.reads == 0
    storage.publish()
    assert FarTensor.reads == 1
    assert storage.published()["a"].value == 4.5
    assert storage.published()["b"].value == 9.0


def test_a_number_on_a_device_is_not_changed_by_what_its_owner_does_next() -> None:
    storage = EventStorage(0)
    running = FarTensor.of(1.0)
    storage.put_scalar("running", running)
    running.mul_(10)
    storage.put_scalar("running", running)
    storage.publish()
    assert storage.published()["running"].value == 5.5


def test_memory_and_state_are_bounded_and_no_graph_is_kept_alive() -> None:
    storage = EventStorage(0)
    parameter = torch.ones(3, requires_grad=True)
    graphs = []

    def put(step: int) -> None:
        storage.iter = step
        for name in range(10):
            value: Any = step * 0.5
            if name == 0 and step % 10 == 0:
                value = (parameter * step).sum()
                graphs.append(weakref.ref(value))
            if name == 1 and step % 10 == 0:
                value = FarTensor.of(step)
            storage.put_scalar(f"name{name}", value)

    for step in range(1000):
        put(step)
    storage.publish()
    size = len(pickle.dumps([storage.state_dict(), storage.local_state_dict()]))
    for step in range(1000, 10_000):
        put(step)
        if step % 100 == 0 and step > 5000:
            storage.publish()
    gc.collect()
    assert not any(graph() is not None for graph in graphs)
    assert all(len(pending) < 512 for pending in storage._pending.values())
    # Twenty publications a name are kept, and a row is a few dozen bytes.
    assert len(pickle.dumps([storage.state_dict(), storage.local_state_dict()])) < size + 10 * 20 * 40


def run(storage: EventStorage, steps: range, *, fold_at: set[int] = frozenset()) -> list[Any]:  # type: ignore[assignment]
    """Put numbers of every kind, publish every 7 steps; what was published."""
    seen = []
    for step in steps:
        storage.iter = step
        numbers = random.Random(step)
        storage.put_scalar("mean", numbers.gauss(0, 1) * 1e3)
        storage.put_scalar("lr", numbers.random(), smoothing_hint=False)
        storage.put_scalar("worst", numbers.random())
        if step in fold_at:
            storage.local_state_dict()
        if step % 7 == 6:
            storage.publish()
            seen.append({name: (v.value, v.iteration, v.serial) for name, v in storage.published().items()})
        seen.append(storage.latest())
    return seen


def fresh() -> EventStorage:
    storage = EventStorage(0)
    storage.set_kind("worst", "max")
    return storage


def test_reading_the_state_at_any_moment_changes_no_later_number() -> None:
    assert run(fresh(), range(40)) == run(fresh(), range(40), fold_at=set(range(0, 40, 3)))


@pytest.mark.parametrize("at", [1, 6, 7, 10, 13, 14, 29])
def test_a_storage_that_was_saved_and_loaded_goes_on_as_if_it_never_was(at: int) -> None:
    whole = run(fresh(), range(40))
    first = fresh()
    before = run(first, range(at))
    state = pickle.loads(pickle.dumps([first.state_dict(), first.local_state_dict()]))
    second = EventStorage(at)
    second.load_state_dict(state[0])
    second.load_local_state_dict(state[1])
    assert before + run(second, range(at, 40)) == whole
    assert second.history("mean") == [v for v in second.history("mean") if v[1] % 7 == 6]
    assert len(second.history("mean")) == 5


def test_loading_keeps_the_kinds_of_names_that_the_state_does_not_know() -> None:
    storage = fresh()
    storage.put_scalar("own", 1.0, smoothing_hint=False)
    storage.load_state_dict(EventStorage(0).state_dict())
    storage.put_scalars(worst=3.0, own=2.0)
    storage.put_scalars(worst=1.0)
    storage.publish()
    assert storage.published()["worst"].value == 3.0
    assert storage.published()["own"].value == 2.0


def test_the_state_loads_with_weights_only(tmp_path: Any) -> None:
    storage = fresh()
    run(storage, range(10))
    torch.save([storage.state_dict(), storage.local_state_dict()], tmp_path / "state.pth")
    assert torch.load(tmp_path / "state.pth", weights_only=True) == [storage.state_dict(), storage.local_state_dict()]
