from __future__ import annotations

import math
from typing import Any

from fastreid_lite.storage import EventStorage
from fastreid_lite.storage.packing import PackedReduction, Partial
from fastreid_lite.utils import comm
from tests.processes import run_processes

Published = dict[str, tuple[float, int]]


def published(storage: EventStorage) -> Published:
    return {name: (value.value, value.iteration) for name, value in sorted(storage.published().items())}


def publish_in_rounds(rounds: list[list[dict[str, float]]]) -> list[tuple[Published, int]]:
    """Each process puts its own part of each round, in the order given, and publishes after it."""
    storage = EventStorage(0)
    storage.set_kind("worst", "max")
    storage.set_kind("newest", "last")
    found = []
    for step, parts in enumerate(rounds):
        storage.iter = step
        for name, value in parts[comm.get_rank()].items():
            storage.put_scalar(name, value)
        storage.publish()
        found.append((published(storage), storage.serial))
    return found


def test_keys_in_another_order_are_not_mixed_up() -> None:
    rounds = [[{"a": 1.0, "b": 10.0}, {"b": 10.0, "a": 1.0}]] * 3
    first, second = run_processes(publish_in_rounds, 2, rounds)
    assert first == second
    assert [found for found, _ in first] == [{"a": (1.0, step), "b": (10.0, step)} for step in range(3)]


def test_keys_that_only_some_processes_have_cost_no_hang_and_no_mix_up() -> None:
    rounds = [
        [{"a": 1.0}, {"b": 10.0}, {}],
        [{"a": 1.0, "c": 3.0}, {"a": 3.0}, {"b": 4.0}],
        [{}, {}, {}],
        [{}, {"0": 5.0}, {"c": 7.0, "z": 1.0}],
    ]
    first, second, third = run_processes(publish_in_rounds, 3, rounds)
    assert first == second == third
    assert [found for found, _ in first] == [
        {"a": (1.0, 0), "b": (10.0, 0)},
        {"a": (2.0, 1), "b": (4.0, 1), "c": (3.0, 1)},
        {"a": (2.0, 1), "b": (4.0, 1), "c": (3.0, 1)},
        {"0": (5.0, 3), "a": (2.0, 1), "b": (4.0, 1), "c": (7.0, 3), "z": (1.0, 3)},
    ]


def test_kinds_are_joined_over_processes_as_they_say() -> None:
    rounds = [[{"worst": 1.0, "newest": 5.0}, {"worst": 3.0, "newest": 6.0}], [{}, {"newest": 7.0, "worst": -2.0}]]
    first, second = run_processes(publish_in_rounds, 2, rounds)
    assert first == second
    assert [found for found, _ in first] == [
        {"newest": (5.0, 0), "worst": (3.0, 0)},
        {"newest": (7.0, 1), "worst": (-2.0, 1)},
    ]


def put_unevenly() -> Published:
    """Rank 0 puts 1 at steps 0 and 1, rank 1 puts 4 at step 3 alone; then again, with the layout known."""
    storage = EventStorage(0)
    steps = {0: [(0, 1.0), (1, 1.0)], 1: [(3, 4.0)]}[comm.get_rank()]
    found = []
    for _ in range(2):
        for step, value in steps:
            storage.iter = step
            storage.put_scalar("x", value)
        storage.publish()
        found.append(published(storage))
    assert found[0] == found[1]
    return found[0]


def test_every_step_of_every_process_counts_once_and_the_newest_step_gives_the_iteration() -> None:
    assert run_processes(put_unevenly, 2) == [{"x": (2.0, 3)}] * 2


def publish_non_finite() -> Published:
    storage = EventStorage(0)
    for _ in range(2):
        storage.put_scalars(a=[math.nan, 1.0][comm.get_rank()], b=2.0, c=[math.inf, 0.0][comm.get_rank()])
        storage.publish()
    return published(storage)


def test_a_number_that_is_not_finite_spoils_no_other_name() -> None:
    for found in run_processes(publish_non_finite, 2):
        assert math.isnan(found["a"][0])
        assert found["b"] == (2.0, 0)
        assert found["c"] == (math.inf, 0)


def disagree(known: bool) -> str:
    storage = EventStorage(0)
    if known:
        storage.put_scalar("x", 1.0)
        storage.publish()
        if comm.get_rank() == 1:
            storage.set_kind("x", "max")
        storage.put_scalar("x", 1.0)
    else:
        storage.put_scalar("x", 1.0, smoothing_hint=comm.get_rank() == 0)
    try:
        storage.publish()
    except ValueError as error:
        return str(error)
    return "nothing was said"


def test_processes_that_disagree_on_a_kind_are_told_so_everywhere() -> None:
    for known in (False, True):
        for message in run_processes(disagree, 2, known):
            assert message.startswith("'x' is put as ") and "give it the same smoothing_hint" in message


def change_kind() -> Published:
    storage = EventStorage(0)
    storage.put_scalars(x=1.0, y=1.0)
    storage.publish()
    storage.set_kind("x", "max")
    for value in (1.0, 5.0):
        storage.put_scalars(x=value + comm.get_rank(), y=1.0)
    storage.publish()
    return published(storage)


def test_a_kind_may_change_where_all_processes_change_it() -> None:
    assert run_processes(change_kind, 2) == [{"x": (6.0, 0), "y": (1.0, 0)}] * 2


def publish_with_head() -> tuple[list[float], list[float], int]:
    """Two publications with a head; the number of collectives of the second one."""
    storage, calls = EventStorage(0), 0
    storage.put_scalar("x", 1.0)
    first = storage.publish([1.0 + comm.get_rank(), 0.5])

    def counted(original: Any) -> Any:
        def call(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return original(*args)

        return call

    comm.all_reduce_sum, comm.all_gather_object = counted(comm.all_reduce_sum), counted(comm.all_gather_object)
    storage.put_scalar("x", 1.0)
    return first, storage.publish([2.0, 0.0]), calls


def test_the_head_is_summed_and_known_names_cost_one_collective() -> None:
    assert run_processes(publish_with_head, 3) == [([6.0, 1.5], [6.0, 0.0], 1)] * 3


def publish_alone_after_the_other_has_gone() -> Published:
    storage = EventStorage(0)
    storage.put_scalar("x", 1.0 + comm.get_rank())
    if comm.get_rank() == 0:
        storage.publish(joined=False)
    return published(storage)


def test_a_run_that_failed_reads_its_own_numbers_without_the_others() -> None:
    assert run_processes(publish_alone_after_the_other_has_gone, 2) == [{"x": (1.0, 0)}, {}]


def resume() -> bool:
    """Two processes that saved and loaded publish what those that did not do."""
    whole, first = EventStorage(0), EventStorage(0)
    for storage in (whole, first):
        for step in range(5):
            storage.iter = step
            storage.put_scalars(a=0.1 * step + comm.get_rank(), b=1.0)
            if step == 2:
                storage.publish()
    second = EventStorage(5)
    second.load_state_dict(comm.broadcast_object(first.state_dict()))
    second.load_local_state_dict(first.local_state_dict())
    for storage in (whole, second):
        storage.iter = 5
        storage.put_scalars(a=0.7, c=2.0)
        storage.publish()
    return published(whole) == published(second) and whole.state_dict() == second.state_dict()


def test_two_processes_go_on_after_a_resume_as_if_they_had_never_stopped() -> None:
    assert run_processes(resume, 2) == [True, True]


def lose_the_others(storage_value: float) -> float:
    """A collective that fails must not lose what was put: the log of the failed run ends with it."""
    storage = EventStorage(0)
    storage.put_scalar("x", storage_value)

    def broken(*_: Any) -> Any:
        raise RuntimeError("peer is gone")

    comm.all_reduce_sum = broken  # type: ignore[assignment]
    try:
        storage.publish()
    except RuntimeError:
        storage.publish(joined=False)
    return storage.published()["x"].value


def test_numbers_survive_a_collective_that_fails() -> None:
    assert run_processes(lose_the_others, 2, 3.0) == [3.0, 3.0]


def test_one_process_joins_nothing() -> None:
    partial = Partial("mean", 3.0, 2, 7)
    assert PackedReduction()([1.0], {"x": partial}) == ([1.0], {"x": partial})
