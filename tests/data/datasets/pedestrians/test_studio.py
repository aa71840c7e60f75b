from __future__ import annotations

import numpy as np
import pytest

from fastreid_lite.data.datasets.pedestrians.cameras import build_cameras
from fastreid_lite.data.datasets.pedestrians.fabric import weave
from fastreid_lite.data.datasets.pedestrians.people import UPPER_PATTERNS, draw_people
from fastreid_lite.data.datasets.pedestrians.studio import Studio


def studio(seed: int = 0, size: tuple[int, int] = (128, 64)) -> Studio:
    return Studio(draw_people(4, seed), cameras=3, size=size, seed=seed)


def test_a_picture_does_not_depend_on_those_taken_before() -> None:
    first, second = studio(), studio()
    second.shoot(3, 2, 1)
    assert first.shoot(0, 1, 2).tobytes() == second.shoot(0, 1, 2).tobytes()


@pytest.mark.parametrize("other", [(1, 1, 2), (0, 0, 2), (0, 1, 3)])
def test_person_camera_and_shot_each_change_the_picture(other: tuple[int, int, int]) -> None:
    assert studio().shoot(0, 1, 2).tobytes() != studio().shoot(*other).tobytes()


@pytest.mark.parametrize("size", [(128, 64), (96, 48), (256, 128), (100, 70), (64, 64)])
def test_pictures_have_the_size_asked_for(size: tuple[int, int]) -> None:
    picture = studio(size=size).shoot(0, 0, 0)
    assert picture.size == size[::-1] and picture.mode == "RGB"
    assert np.asarray(picture).std() > 10


def test_a_loose_box_shows_something_else() -> None:
    assert studio().shoot(0, 0, 0, loose=True).tobytes() != studio().shoot(0, 0, 0).tobytes()


def test_cameras_differ_in_colour_more_than_people_do() -> None:
    eyes = studio()
    taken = np.array([[np.asarray(eyes.shoot(p, c, 0)).mean(axis=(0, 1)) for c in range(3)] for p in range(4)])
    between_cameras = taken.mean(axis=0).std(axis=0).mean()
    between_people = taken.mean(axis=1).std(axis=0).mean()
    assert between_cameras > between_people


def test_a_camera_list_is_a_function_of_its_seed() -> None:
    first, again, other = (build_cameras(3, seed, width=192, height=294) for seed in (0, 0, 1))
    assert all(
        np.array_equal(a.gains, b.gains) and a.place.tobytes() == b.place.tobytes() for a, b in zip(first, again)
    )
    assert not np.array_equal(first[0].gains, other[0].gains)


@pytest.mark.parametrize("pattern", UPPER_PATTERNS)
def test_every_pattern_but_plain_shows_both_colours(pattern: str) -> None:
    cloth = np.asarray(weave(pattern, ((10, 20, 30), (200, 210, 220)), length=0.34, height=230.0))
    assert set(np.unique(cloth[..., 0]).tolist()) == ({10} if pattern == "plain" else {10, 200})


def test_all_patterns_are_different() -> None:
    cloths = {weave(p, ((0, 0, 0), (255, 255, 255)), length=0.34, height=230.0).tobytes() for p in UPPER_PATTERNS}
    assert len(cloths) == len(UPPER_PATTERNS)
