"""Several datasets as one training set, in which nobody becomes someone else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastreid_lite.data.datasets.parts import MarketStyleData, require_part
from fastreid_lite.data.samples import ReIDData, Samples


class Label(NamedTuple):
    """Whom a class stands for: ``pid`` in the part ("train" or "test") of the dataset named ``dataset``."""

    dataset: str
    part: str
    pid: int


def combine_train(datasets: Sequence[ReIDData], combineall: bool) -> tuple[Samples, tuple[Label, ...]]:
    """Join the training parts of ``datasets``, in order.

    People are told apart by dataset name, part and pid: equal pids of two datasets, or of the train and the test part
    of one, are different people. Cameras of two datasets are different too, those of a set's parts the same.

    Args:
        datasets: at least one; each with a training part.
        combineall: whether query and gallery are learnt as well (DATASETS.COMBINEALL), except distractors and junk.
            An image that is in both is taken once.

    Returns:
        The samples: pids 0..C-1 in the order of the labels; camids of the k-th set shifted past those of the sets
        before it, and left out where one of the sets has no cameras, as is any other column that not all have.
        And the labels: (C,), whom each class stands for, by dataset, then train before test, then pid.

    Raises:
        ValueError: no dataset, the same one twice, one without training images, one image in two sets, or boxes in
            some sets alone.
    """
    _refuse_repeats(datasets)
    parts: list[Samples] = []
    labels: list[Label] = []
    camera_shift = 0
    for data in datasets:
        pieces = [("train", require_part(data, "train"))]
        if combineall:
            pieces.append(("test", _learnable_test(data)))
        for part, samples in pieces:
            parts.append(_relabelled(samples, len(labels), camera_shift))
            labels += [Label(data.name, part, int(pid)) for pid in np.unique(samples.pids)]
        camera_shift += 1 + max((int(s.camids.max()) for _, s in pieces if s.camids is not None and len(s)), default=-1)
    return Samples.concatenate([part for part in parts if len(part)]), tuple(labels)


def lost_columns(datasets: Sequence[ReIDData], joined: Samples) -> list[str]:
    """A line for the log about each column of ``datasets`` that :func:`combine_train` left out of ``joined``."""
    lines = []
    for column in dict.fromkeys(name for data in datasets for name in data.train.columns):
        if column not in joined.columns:
            without = [data.name for data in datasets if _lacks(data, column)]
            lines.append(f"training: the column {column!r} is left out, since {', '.join(without)} has none")
    return lines


def _lacks(data: ReIDData, column: str) -> bool:
    """Whether a part of ``data`` that has images is without ``column``."""
    return any(len(part) and column not in part.columns for part in (data.train, data.query, data.gallery))


def _relabelled(samples: Samples, first_label: int, camera_shift: int) -> Samples:
    """``samples`` with pids counted from ``first_label`` in sorted order, and camids moved up."""
    _, positions = np.unique(samples.pids, return_inverse=True)
    columns = {**samples.columns, "pid": positions.astype(np.int64) + first_label}
    if samples.camids is not None:
        columns["camid"] = samples.camids + camera_shift
    return Samples(samples.paths, columns, samples.boxes)


def _learnable_test(data: ReIDData) -> Samples:
    """Query and gallery of ``data`` as one, each image once, without those that show nobody."""
    seen: set[tuple[str, tuple[int, ...]]] = set()
    pieces = []
    for samples in (data.query, data.gallery):
        keys = _image_keys(samples)
        keep = np.array([key not in seen for key in keys], dtype=bool)
        seen.update(keys)
        if isinstance(data, MarketStyleData):
            keep &= ~np.isin(samples.pids, list(data.distractor_pids))
        pieces.append(samples.select(keep & (samples.pids >= 0)))
    return Samples.concatenate([piece for piece in pieces if len(piece)] or pieces[:1])


def _image_keys(samples: Samples) -> list[tuple[str, tuple[int, ...]]]:
    """What tells one image from another: its file, and its box where it has one."""
    if samples.boxes is None:
        return [(path, ()) for path in samples.paths]
    return [(path, tuple(box)) for path, box in zip(samples.paths, samples.boxes.tolist())]


def _refuse_repeats(datasets: Sequence[ReIDData]) -> None:
    if not datasets:
        raise ValueError("no dataset to train on (DATASETS.NAMES is empty), expected at least 1 name")
    names = [data.name for data in datasets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"dataset {twice!r} stands more than once in DATASETS.NAMES {names}, expected each name once")
    boxed = [data.name for data in datasets if data.train.boxes is not None]
    if 0 < len(boxed) < len(datasets):
        raise ValueError(
            f"of the datasets {names} (DATASETS.NAMES) {boxed} have boxes and the others have not; they cannot be "
            "joined: give the others a box for each image, or cut the boxed images out into files"
        )
    if len(datasets) > 1:
        _refuse_shared_images(datasets)


def _refuse_shared_images(datasets: Sequence[ReIDData]) -> None:
    owner: dict[tuple[str, tuple[int, ...]], str] = {}
    for data in datasets:
        for key in _image_keys(data.train):
            other = owner.setdefault(key, data.name)
            if other != data.name:
                raise ValueError(
                    f"the image {key[0]!r} is in the training parts of both {other!r} and {data.name!r} "
                    "(DATASETS.NAMES), where it would be two people; name each folder once"
                )
