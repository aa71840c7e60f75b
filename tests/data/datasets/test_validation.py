from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fastreid_lite.data.datasets import split_validation
from fastreid_lite.data.samples import Samples


def samples(pids: Sequence[int], camids: Sequence[int] | None = None) -> Samples:
    columns = {"pid": np.array(pids, dtype=np.int64)}
    if camids is not None:
        columns["camid"] = np.array(camids, dtype=np.int64)
    return Samples(tuple(f"{row}.jpg" for row in range(len(pids))), columns)


def test_identities_are_taken_out_whole() -> None:
    everyone = samples([pid for pid in range(10) for _ in range(4)], [0, 0, 1, 2] * 10)
    train, held_out = split_validation(everyone, 0.3, seed=5)
    assert len(train) == 28 and len(held_out.query) == 12
    assert held_out.query is held_out.gallery
    assert not set(train.pids.tolist()) & set(held_out.query.pids.tolist())
    assert sorted(train.paths + held_out.query.paths) == sorted(everyone.paths)
    assert len(held_out.train) == 0 and held_out.name == "validation"


def test_the_draw_is_a_function_of_the_seed() -> None:
    everyone = samples(list(range(20)) * 2)
    draws = [tuple(split_validation(everyone, 0.5, seed=seed)[1].query.paths) for seed in (0, 0, 1, 2)]
    assert draws[0] == draws[1] and len(set(draws)) == 3


def test_only_people_who_can_be_found_again_are_drawn() -> None:
    by_camera = samples([0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 3, 3])
    assert set(split_validation(by_camera, 0.9, seed=0)[1].query.pids.tolist()) == {1}
    without_cameras = samples([0, 1, 2, 2])
    assert set(split_validation(without_cameras, 0.9, seed=0)[1].query.pids.tolist()) == {2}


def test_people_of_one_camera_are_drawn_where_cameras_take_nothing_out() -> None:
    everyone = samples([0, 0, 1, 1, 2], [0, 0, 0, 1, 3])
    for excluding in ((), ("camid", "clothes")):  # the set has no column of clothes
        drawn = split_validation(everyone, 0.9, seed=0, exclude_same=excluding)[1].query.pids
        assert set(drawn.tolist()) == {0, 1}
    clothed = Samples(everyone.paths, {**everyone.columns, "clothes": np.array([1, 2, 1, 1, 1])})
    drawn = split_validation(clothed, 0.9, seed=0, exclude_same=("clothes",))[1].query.pids
    assert set(drawn.tolist()) == {0}


def test_somebody_is_left_to_train_on() -> None:
    train, _ = split_validation(samples([0, 0, 1, 1]), 0.99, seed=0)
    assert len(train) == 2


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1, 3])
def test_a_fraction_that_splits_nothing_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"fraction \(DATASETS.VAL_FRACTION\) is .*between 0 and 1"):
        split_validation(samples([0, 0, 1, 1]), fraction, seed=0)


@pytest.mark.parametrize("pids", [[1, 1, 1], [1, 2, 3]])
def test_a_set_that_cannot_be_split_is_refused(pids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"no validation part \(DATASETS.VAL_FRACTION 0.5\) can be cut from"):
        split_validation(samples(pids), 0.5, seed=0)
