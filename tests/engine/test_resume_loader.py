"""Exact resume with real images, the real loader and every augmentation, whatever the workers on either side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from fastreid_lite.data.loader import TrainLoader
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.samplers import NaiveIdentitySampler
from fastreid_lite.data.samples import Samples
from fastreid_lite.data.transforms import (
    ColorJitter,
    PadAndCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
)
from fastreid_lite.engine import hooks
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import BreakAt, PowerCutError, comparable, differences, from_bytes, to_bytes

TOTAL = 13


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """6 identities with 4 images each of 20x12 noise: 6 batches of 4 to an epoch."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    paths, pids = [], []
    for pid in range(6):
        for number in range(4):
            path = folder / f"{pid:04d}_c{number % 2 + 1}_{number}.jpg"
            Image.fromarray(random.integers(0, 256, (20, 12, 3), dtype=np.uint8)).save(path)
            paths.append(str(path))
            pids.append(pid)
    return Samples(tuple(paths), {"pid": np.array(pids), "camid": np.arange(24) % 2})


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(4, 6))

    def forward(self, batch: dict[str, Any]) -> dict[str, torch.Tensor]:
        out = self.head(self.body((batch["images"].float() - 128) / 64))
        return {"loss_cls": nn.functional.cross_entropy(out, batch["targets"])}


@contextmanager
def trainer_over(samples: Samples, *, workers: int, seed: int) -> Iterator[SimpleTrainer]:
    preprocessor = Preprocessor(
        (16, 8),
        (16, 8),
        after_resize=[
            RandomResizedCrop((16, 8), scale=(0.6, 1.0)),
            PadAndCrop(2),
            RandomHorizontalFlip(0.5),
            ColorJitter(0.7, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.1),
            RandomErasing(0.5),
        ],
    )
    sampler = NaiveIdentitySampler(samples.pids, samples.camids, batch_size=4, num_instances=2, seed=3)
    loader = TrainLoader(samples, sampler, preprocessor, batch_size=4, seed=7, num_workers=workers)
    torch.manual_seed(1)
    model = Net()
    trainer = SimpleTrainer(model, loader, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    trainer.register_hooks([hooks.PeriodicWriter([], 4)])
    torch.manual_seed(seed)
    try:
        yield trainer
    finally:
        loader.close()


@pytest.fixture(autouse=True)
def global_state() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.fixture(scope="module")
def reference(samples: Samples) -> dict[str, Any]:
    with torch.random.fork_rng(devices=[]), trainer_over(samples, workers=0, seed=2) as trainer:
        trainer.train(0, TOTAL)
        return comparable(from_bytes(to_bytes(trainer.state_dict())))


def in_two_parts(samples: Samples, steps: int, before: int, after: int) -> dict[str, Any]:
    crash = BreakAt(steps)
    with trainer_over(samples, workers=before, seed=2) as trainer:
        trainer.register_hooks([crash])
        with pytest.raises(PowerCutError):
            trainer.train(0, TOTAL)
    with trainer_over(samples, workers=after, seed=99) as trainer:
        trainer.load_state_dict(from_bytes(crash.file))
        trainer.train(trainer.iter, TOTAL)
        return comparable(from_bytes(to_bytes(trainer.state_dict())))


@pytest.mark.parametrize("steps", [1, 5, 6, 7, 12])
def test_images_are_the_same_after_a_break_at_any_step(steps: int, samples: Samples, reference: Any) -> None:
    assert not differences(reference, in_two_parts(samples, steps, 0, 0))


@pytest.mark.parametrize(
    ("before", "after"),
    [(0, 1), (1, 0)]
    + [pytest.param(*pair, marks=pytest.mark.slow) for pair in [(1, 1), (4, 0), (0, 4), (4, 4), (1, 4)]],
)
def test_workers_on_either_side_of_the_break_change_nothing(
    before: int, after: int, samples: Samples, reference: Any
) -> None:
    assert not differences(reference, in_two_parts(samples, 8, before, after))


def test_no_image_is_read_to_get_to_the_position(samples: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = BreakAt(5)
    with trainer_over(samples, workers=0, seed=2) as trainer:
        trainer.register_hooks([crash])
        with pytest.raises(PowerCutError):
            trainer.train(0, TOTAL)
    with trainer_over(samples, workers=0, seed=2) as trainer:
        trainer.load_state_dict(from_bytes(crash.file))
        read: list[Any] = []
        train = trainer.data_loader.preprocessor.train
        monkeypatch.setattr(
            trainer.data_loader.preprocessor,
            "train",
            lambda image, generator: (read.append(1), train(image, generator))[1],
        )
        trainer.train(5, 6)
    assert len(read) == 4
