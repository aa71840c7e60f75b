"""A toy set of images on disk, and where the shared material lies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fastreid_lite.data.samples import Samples


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """6 identities x 4 images, half of them from each of 2 cameras, random JPEGs of 16x8 pixels."""
    return write_images(tmp_path_factory.mktemp("toy"), identities=6, images=4)


@pytest.fixture
def make_images(tmp_path: Path) -> Callable[..., Samples]:
    """Like ``toy``, but any number of identities and images each, in a folder that the test may spoil."""

    def make(*, identities: int, images: int) -> Samples:
        return write_images(tmp_path, identities=identities, images=images)

    return make


def write_images(folder: Path, *, identities: int, images: int) -> Samples:
    rng = np.random.default_rng(0)
    paths, pids, camids = [], [], []
    for pid in range(identities):
        for number in range(images):
            path = folder / f"{pid:04d}_c{number % 2 + 1}s1_{number:06d}.jpg"
            Image.fromarray(rng.integers(0, 256, (16, 8, 3), dtype=np.uint8)).save(path)
            paths.append(str(path))
            pids.append(pid)
            camids.append(number % 2)
    return Samples(tuple(paths), {"pid": np.array(pids), "camid": np.array(camids)})


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden values beside the repository; tests that need it skip where it is absent."""
    folder = Path(__file__).resolve().parents[3] / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared is not there")
    return folder
