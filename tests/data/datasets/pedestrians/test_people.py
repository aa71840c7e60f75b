from __future__ import annotations

import dataclasses

import numpy as np

from fastreid_lite.data.datasets.pedestrians.people import (
    FEWEST_DIFFERENCES,
    PATTERN_CONTRAST,
    Person,
    draw_people,
    luminance,
)


def looks(person: Person) -> dict[str, object]:
    return {name: value for name, value in dataclasses.asdict(person).items() if name != "traits"}


def test_the_first_people_are_the_same_however_many_follow() -> None:
    assert [looks(person) for person in draw_people(5, seed=3)] == [looks(person) for person in draw_people(9, seed=3)][
        :5
    ]


def test_another_seed_draws_other_people() -> None:
    assert looks(draw_people(1, seed=0)[0]) != looks(draw_people(1, seed=1)[0])


def test_any_two_people_differ_in_several_traits() -> None:
    traits = np.stack([person.traits for person in draw_people(120, seed=0)])
    differences = (traits[:, None] != traits[None]).sum(axis=2)
    assert differences[~np.eye(len(traits), dtype=bool)].min() >= FEWEST_DIFFERENCES


def test_many_people_share_their_main_colours() -> None:
    traits = [tuple(person.traits[[8, 10]].tolist()) for person in draw_people(120, seed=0)]
    assert len(set(traits)) < 90


def test_the_two_colours_of_a_pattern_differ_in_luminance() -> None:
    for person in draw_people(60, seed=1):
        for first, second in (person.upper_colours, person.lower_colours):
            assert abs(luminance(first) - luminance(second)) > PATTERN_CONTRAST - 30
