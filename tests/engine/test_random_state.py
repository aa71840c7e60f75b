"""The global generators go into a file and come back."""

from __future__ import annotations

import random

import numpy as np
import torch

from fastreid_lite.checkpoint.plain import to_plain
from fastreid_lite.engine.random_state import random_state, set_random_state
from tests.engine.step_toys import from_bytes, to_bytes


def draw() -> list[float]:
    return [
        random.random(),
        random.gauss(0, 1),
        float(np.random.rand()),
        float(np.random.randn()),
        *torch.rand(3).tolist(),
        float(torch.randn(())),
    ]


def test_all_generators_go_on_where_they_were() -> None:
    before = random_state()
    try:
        draw()  # leaves half a pair of normal numbers behind in two of them
        kept = from_bytes(to_bytes(to_plain(random_state())))
        wanted = draw() + draw()
        draw()
        set_random_state(kept)
        assert draw() + draw() == wanted
    finally:
        set_random_state(before)


def test_asking_draws_nothing() -> None:
    before = random_state()
    try:
        wanted = draw()
        set_random_state(before)
        random_state()
        assert draw() == wanted
    finally:
        set_random_state(before)


def test_a_state_of_a_machine_with_an_accelerator_is_taken_where_there_is_none() -> None:
    state = {**random_state(), "accelerator": torch.zeros(16, dtype=torch.uint8)}
    if not torch.accelerator.is_available():
        set_random_state(state)
