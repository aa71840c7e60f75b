"""No draw repeats between workers, epochs or processes, wherever a transform takes it from."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from fastreid_lite.data.loader import TrainLoader
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.samplers import TrainingSampler
from fastreid_lite.data.samples import Samples
from fastreid_lite.data.transforms import ForeignTransform


class FourDraws:
    """Writes one draw of each kind into the pixels, 24 bits each."""

    def __init__(self) -> None:
        self.own = np.random.default_rng(0)

    def __call__(self, image: object) -> np.ndarray:
        drawn = [random.random(), np.random.random(), float(torch.rand((), dtype=torch.float64)), self.own.random()]
        whole = [int(value * 2**24) for value in drawn]
        return np.array([[[number >> 16, number >> 8 & 255, number & 255] for number in whole]], dtype=np.uint8)


def draws(samples: Samples, *, workers: int, persistent: bool, seed: int = 0) -> np.ndarray:
    """(2 epochs, 24, 4) the draws of two epochs of two processes."""
    preprocessor = Preprocessor(None, None, after_resize=[ForeignTransform(FourDraws())])
    epochs: list[list[torch.Tensor]] = [[], []]
    for rank in range(2):
        loader = TrainLoader(
            samples,
            TrainingSampler(samples.pids, batch_size=4, seed=seed),
            preprocessor,
            batch_size=4,
            seed=seed,
            num_workers=workers,
            rank=rank,
            world_size=2,
            persistent_workers=persistent,
        )
        for epoch in epochs:
            epoch += [batch["images"] for batch in loader]
        loader.close()
    pixels = torch.stack([torch.cat(epoch) for epoch in epochs]).long()[:, :, :, 0]  # (2, 24, 3, 4)
    return (pixels[:, :, 0] * 65536 + pixels[:, :, 1] * 256 + pixels[:, :, 2]).numpy()


@pytest.fixture(scope="module")
def reference(toy: Samples) -> np.ndarray:
    return draws(toy, workers=0, persistent=False)


def test_no_draw_repeats_from_any_of_the_four_sources(reference: np.ndarray) -> None:
    assert reference.shape == (2, 24, 4)
    for source in range(4):
        assert len(set(reference[:, :, source].reshape(-1).tolist())) == 48


@pytest.mark.parametrize("persistent", [True, False])
def test_four_workers_draw_what_none_draws(toy: Samples, reference: np.ndarray, persistent: bool) -> None:
    assert (draws(toy, workers=4, persistent=persistent) == reference).all()


def test_another_seed_draws_other_numbers(toy: Samples, reference: np.ndarray) -> None:
    other = draws(toy, workers=0, persistent=False, seed=1)
    assert not set(other.reshape(-1).tolist()) & set(reference.reshape(-1).tolist())
