"""Small datasets on disk. The readers look at names alone, so the images are empty files unless a test reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.config import get_cfg

MARKET = {
    "bounding_box_train": ("0002_c1s1_000451_03.jpg", "0002_c2s1_000451_03.jpg", "0007_c6s3_000001_01.jpg.jpg"),
    "query": ("0001_c1s1_001051_00.jpg",),
    "bounding_box_test": ("-1_c1s1_000401_03.jpg", "0000_c2s1_000151_01.jpg", "0001_c3s1_000151_01.jpg"),
}


@pytest.fixture
def touch() -> Callable[[Path, Iterable[str]], None]:
    def make(folder: Path, names: Iterable[str]) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()

    return make


@pytest.fixture
def market(tmp_path: Path, touch: Callable[[Path, Iterable[str]], None]) -> Callable[..., Path]:
    def make(root: Path = tmp_path, **changes: Iterable[str]) -> Path:
        for part, names in {**MARKET, **changes}.items():
            folder = root / "Market-1501-v15.09.15" / part
            folder.mkdir(parents=True)
            touch(folder, names)
        return root

    return make


@pytest.fixture
def cfg(tmp_path: Path) -> Any:
    node = get_cfg()
    node.DATASETS.ROOT = str(tmp_path)
    return node
