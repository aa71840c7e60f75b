"""A table of images: one CSV file for a whole set, with any columns of integers."""

from __future__ import annotations

import os

import numpy as np

from fastreid_lite.data.datasets.csv_rows import CsvTable, is_integer
from fastreid_lite.data.datasets.parts import require_part, under_root
from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.samples import ReIDData, Samples

PARTS = ("train", "query", "gallery")
REQUIRED = ("path", "pid", "split")
BOX = ("x", "y", "w", "h")
TAKEN = ("images", "targets", "camids", "img_paths", "indices")
"""Names that a batch uses already."""


@DATASET_REGISTRY.register()
class CsvReID:
    """Images listed in a CSV file: UTF-8, comma-separated, the first row a header.

    Columns: ``path`` (absolute, or relative to the file's folder), ``pid``, ``split`` (train, query or gallery);
    where there are any, ``camid`` (0 or more) and the box ``x``, ``y``, ``w``, ``h`` (pixels of the upright image; what
    lies outside of the image is cut off when it is read).
    Any other column of integers becomes one of the samples; one of words is left out, with a note. Pids that are all
    integers (0 or more) stay, each written in one way within a split ("7" or "007"); if any is a word, all are numbered
    from 0 in sorted order, the same in all splits. There may be no train rows, or neither query nor gallery rows.

    Args:
        root: the datasets folder.
        path: the file, absolute or under ``root``.
    """

    def __init__(self, root: str | os.PathLike[str], *, path: str) -> None:
        self._name = f"CsvReID:{path}"
        self._file = under_root(root, path)

    @property
    def folder(self) -> str:
        """Where it looks: the file."""
        return str(self._file)

    def missing(self) -> str | None:
        """What is not there, in words; None where all is."""
        return None if self._file.is_file() else f"the file {self.folder!r} does not exist"

    def load(self) -> ReIDData:
        """Read the file.

        Raises:
            ValueError: a column is missing or has a name that is taken, a value is off (with file, line, column and
                value), an image file is not there, or there are no rows, or only one of query and gallery has any.
        """
        table = CsvTable.read(self._file)
        self._check_header(list(table.columns))
        splits = _read_splits(table)
        columns = {"pid": _read_pids(table, splits)}
        if "camid" in table.columns:
            columns["camid"] = table.integers("camid", least=0)
        notes = []
        for name in table.columns:
            if name in (*REQUIRED, *BOX, "camid"):
                continue
            if len(table) and not is_integer(table.columns[name][0]):
                notes.append(
                    f"the column {name!r} is not of integers (first value {table.columns[name][0]!r}): left out"
                )
            else:
                columns[name] = table.integers(name)
        samples = Samples(_read_paths(table), columns, _read_boxes(table))
        parts = {part: samples.select(np.array(splits) == part) for part in PARTS}
        data = ReIDData(self._name, self.folder, parts["train"], parts["query"], parts["gallery"], tuple(notes))
        if len(data.query) or len(data.gallery) or not len(data.train):
            for part in ("query", "gallery") if len(samples) else ("train",):
                require_part(data, part)
        return data

    def _check_header(self, names: list[str]) -> None:
        missing = [name for name in REQUIRED if name not in names]
        boxes = [name for name in BOX if name in names]
        if boxes and len(boxes) < len(BOX):
            missing += [name for name in BOX if name not in names]
        if missing:
            raise ValueError(
                f"the header of the CSV file {self.folder!r} has no column {', '.join(missing)}, it has "
                f"{', '.join(names)}; expected path, pid, split, and where there are any camid and all of x, y, w, h"
            )
        taken = [name for name in names if name in TAKEN]
        if taken:
            raise ValueError(
                f"the header of the CSV file {self.folder!r} has the column {taken[0]!r}, a name that batches use for "
                f"something else ({', '.join(TAKEN)}); give it another name"
            )


def _read_paths(table: CsvTable) -> tuple[str, ...]:
    paths = tuple(os.path.normpath(table.file.parent / text) for text in table.columns["path"])
    absent = [position for position, path in enumerate(paths) if not os.path.isfile(path)]
    if absent:
        raise table.error(
            absent[0],
            "path",
            f"expected an image file (absolute, or relative to the CSV file's folder), but {paths[absent[0]]!r} is "
            f"none, the first of {len(absent):,} of {len(paths):,}",
        )
    return paths


def _read_pids(table: CsvTable, splits: list[str]) -> np.ndarray:
    texts = table.columns["pid"]
    if all(is_integer(text) for text in texts):
        pids = table.integers("pid", least=0)
        _refuse_two_spellings(table, splits)
        return pids
    if "" in texts:
        raise table.error(texts.index(""), "pid", "expected an integer or a word")
    numbers = {word: position for position, word in enumerate(sorted(set(texts)))}
    return np.array([numbers[text] for text in texts], dtype=np.int64)


def _refuse_two_spellings(table: CsvTable, splits: list[str]) -> None:
    """Refuse two pids of one split that are the same number, as "7" and "007": they may be two people."""
    seen: dict[tuple[str, int], int] = {}
    for position, (split, text) in enumerate(zip(splits, table.columns["pid"])):
        first = seen.setdefault((split, int(text)), position)
        other = table.columns["pid"][first]
        if other != text:
            raise table.error(
                position,
                "pid",
                f"which is the same number as {other!r} on line {table.lines[first]} of the same split; write the pid "
                f"of one person in one way",
            )


def _read_splits(table: CsvTable) -> list[str]:
    splits = table.columns["split"]
    for position, split in enumerate(splits):
        if split not in PARTS:
            raise table.error(position, "split", f"expected one of {', '.join(PARTS)}")
    return splits


def _read_boxes(table: CsvTable) -> np.ndarray | None:
    if "x" not in table.columns:
        return None
    sides = [table.integers(name, least=None if name in ("x", "y") else 1) for name in BOX]
    return np.stack(sides, axis=1)
