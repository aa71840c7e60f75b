"""What a dataset is made of: samples, each an image path and a row of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Samples:
    """N images: where each lies, and integers about each.

    Args:
        paths: image files, N of them.
        columns: name to (N,) int64. ``"pid"`` is always there; ``"camid"`` where the set has cameras; any other
            (clothes, modality, tracklet, time) as the set has it.
        boxes: (N, 4) int64 of x, y, width, height in pixels of the upright image, where a sample is a part of a file;
            None where it is the whole file.

    Raises:
        ValueError: lengths differ, or ``"pid"`` is missing.
    """

    paths: tuple[str, ...]
    columns: Mapping[str, np.ndarray]
    boxes: np.ndarray | None = None

    def __post_init__(self) -> None:
        if "pid" not in self.columns:
            raise ValueError(f"samples need a column 'pid', got {sorted(self.columns)}")
        for name, values in self.columns.items():
            if values.shape != (len(self.paths),):
                raise ValueError(f"column {name!r} has shape {values.shape}, expected ({len(self.paths)},)")
        if self.boxes is not None and self.boxes.shape != (len(self.paths), 4):
            raise ValueError(f"boxes have shape {self.boxes.shape}, expected ({len(self.paths)}, 4)")

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def pids(self) -> np.ndarray:
        """(N,) int64, the identity of each image."""
        return self.columns["pid"]

    @property
    def camids(self) -> np.ndarray | None:
        """(N,) int64, the camera of each image; None where the set has no cameras."""
        return self.columns.get("camid")

    def select(self, indices: Sequence[int] | np.ndarray) -> Samples:
        """The samples at ``indices`` (M,), in that order; a (N,) bool mask selects as in numpy."""
        where = np.asarray(indices)
        if where.dtype != bool:
            where = where.astype(np.int64)
        rows = np.flatnonzero(where) if where.dtype == bool else where
        return Samples(
            tuple(self.paths[int(row)] for row in rows),
            {name: values[rows] for name, values in self.columns.items()},
            None if self.boxes is None else self.boxes[rows],
        )

    @staticmethod
    def empty(columns: Sequence[str] = ("pid", "camid")) -> Samples:
        """No samples, with these columns."""
        return Samples((), {name: np.zeros(0, dtype=np.int64) for name in columns})

    @staticmethod
    def concatenate(parts: Sequence[Samples]) -> Samples:
        """All ``parts`` one after the other. Only columns that every part has are kept."""
        names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        boxes = None
        if any(part.boxes is not None for part in parts):
            if any(part.boxes is None for part in parts):
                raise ValueError("samples with boxes and samples without cannot be joined")
            boxes = np.concatenate([part.boxes for part in parts if part.boxes is not None])
        return Samples(
            tuple(path for part in parts for path in part.paths),
            {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
            boxes,
        )


@dataclass(frozen=True)
class ReIDData:
    """A dataset as read: three parts of samples.

    Args:
        name: as in DATASETS.NAMES ("Market1501", "ImageFolderReID:toy").
        folder: where it lies.
        train: pids as in the files; the loader relabels them to 0..C-1.
        query, gallery: pids as in the files. Junk images (Market's -1) are gone already.
        notes: lines about what was left out, for the log ("2,793 junk boxes (pid -1) dropped").
    """

    name: str
    folder: str
    train: Samples
    query: Samples
    gallery: Samples
    notes: tuple[str, ...] = field(default=())
