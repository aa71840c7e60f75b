"""Market-1501 in its published layout (Zheng et al., "Scalable Person Re-identification: A Benchmark", ICCV 2015)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from fastreid_lite.data.datasets.parts import (
    MarketStyleData,
    empty_part,
    list_images,
    missing_folder,
    require_folder,
)
from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.samples import ReIDData, Samples

FOLDERS = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}
JUNK, DISTRACTOR = -1, 0
_NAME = re.compile(r"(-1|\d{1,18})_c(\d{1,9})s\d+[_.].*", re.ASCII | re.DOTALL)


@DATASET_REGISTRY.register()
class Market1501:
    """Market-1501: 32,668 boxes of 1,501 people by 6 cameras.

    Args:
        root: the datasets folder; the set lies in ``Market-1501-v15.09.15`` under it.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._folder = Path(root) / "Market-1501-v15.09.15"

    @property
    def folder(self) -> str:
        """Where it looks."""
        return str(self._folder)

    def missing(self) -> str | None:
        """What is not there, in words; None where all is."""
        return missing_folder(self._folder, tuple(FOLDERS.values()))

    def load(self) -> ReIDData:
        """Read the names of all files.

        Raises:
            ValueError: see :func:`read_market_layout`.
        """
        return read_market_layout("Market1501", self._folder, cameras=6)


def read_market_layout(dataset: str, folder: Path, *, cameras: int) -> ReIDData:
    """Read a folder laid out and named as Market-1501: ``<pid>_c<camera>s<sequence>_<frame>_<box>.jpg``.

    Only the file's name is looked at, never the path. Cameras count from 1 in names and from 0 in samples. Junk boxes
    (pid -1) are dropped everywhere; distractors (pid 0) stay in the gallery alone, as wrong answers.

    Args:
        dataset: its name, for messages and for the data.
        folder: that holds bounding_box_train, query and bounding_box_test.
        cameras: how many there are.

    Raises:
        ValueError: a folder is missing, a part is empty, or a name is off the pattern.
    """
    require_folder(dataset, folder, tuple(FOLDERS.values()))
    notes: list[str] = []
    parts = {part: _read_part(dataset, folder / name, part, cameras, notes) for part, name in FOLDERS.items()}
    return MarketStyleData(dataset, str(folder), parts["train"], parts["query"], parts["gallery"], tuple(notes))


def _read_part(dataset: str, folder: Path, part: str, cameras: int, notes: list[str]) -> Samples:
    names = list_images(folder)
    matches = [_NAME.fullmatch(name) for name in names]
    off = [name for name, match in zip(names, matches) if match is None or not 1 <= int(match[2]) <= cameras]
    if off:
        raise ValueError(
            f"dataset {dataset!r}: in the part {part!r} in {str(folder)!r} {len(off):,} of {len(names):,} image names "
            f"are off the pattern '<pid>_c<camera>s<sequence>_...' with pid -1 or more and camera 1 to {cameras}, the "
            f"first {off[0]!r}; rename or remove them"
        )
    pids = np.array([int(match[1]) for match in matches if match], dtype=np.int64)
    camids = np.array([int(match[2]) - 1 for match in matches if match], dtype=np.int64)
    dropped = {JUNK: "junk boxes"} if part == "gallery" else {JUNK: "junk boxes", DISTRACTOR: "distractors"}
    for pid, what in dropped.items():
        count = int((pids == pid).sum())
        if count:
            notes.append(f"{count:,} {what} (pid {pid}) dropped from {part}")
    keep = ~np.isin(pids, list(dropped))
    if not keep.any():
        raise ValueError(
            empty_part(dataset, folder, part, f" besides {len(names):,} junk or distractors" if names else "")
        )
    samples = Samples(tuple(str(folder / name) for name in names), {"pid": pids, "camid": camids})
    return samples.select(keep)
