"""A folder of folders, one an identity: the simplest way to bring images of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from fastreid_lite.data.datasets.identities import draw_identities, number_identities
from fastreid_lite.data.datasets.parts import (
    empty_part,
    list_folders,
    list_images,
    missing_folder,
    require_folder,
    under_root,
)
from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.samples import ReIDData, Samples

PARTS = ("train", "query", "gallery")


@DATASET_REGISTRY.register()
class ImageFolderReID:
    """Images in ``train/ID``, ``query/ID`` and ``gallery/ID``, or in ``ID`` folders alone; no cameras.

    A folder may lack ``train``, or ``query`` and ``gallery`` together. With ``ID`` folders alone some identities are
    drawn for testing, and each of their images is a query against the others (query and gallery are then the same
    images). Names of digits alone are the pids; if any name in the set is another word, all are numbered from 0 in
    sorted order, the same in all parts.

    Args:
        root: the datasets folder.
        path: the folder, absolute or under ``root``.
        test_fraction: part of the identities drawn for testing, between 0 and 1 (ID folders alone).
        split_seed: of that draw.

    Raises:
        ValueError: ``test_fraction`` is not between 0 and 1.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, path: str, test_fraction: float = 0.5, split_seed: int = 0
    ) -> None:
        if not 0.0 < test_fraction < 1.0:
            raise ValueError(
                f"test_fraction (DATASETS.TEST_FRACTION) is {test_fraction}, expected a part of the identities between "
                "0 and 1, both excluded"
            )
        self._name = f"ImageFolderReID:{path}"
        self._folder = under_root(root, path)
        self._test_fraction = test_fraction
        self._split_seed = split_seed

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Arguments from DATASETS.TEST_FRACTION and DATASETS.SPLIT_SEED."""
        return {"test_fraction": cfg.DATASETS.TEST_FRACTION, "split_seed": cfg.DATASETS.SPLIT_SEED}

    @property
    def folder(self) -> str:
        """Where it looks."""
        return str(self._folder)

    def missing(self) -> str | None:
        """What is not there, in words; None where all is."""
        return missing_folder(self._folder, ())

    def load(self) -> ReIDData:
        """List all images.

        Raises:
            ValueError: the folder is missing, a part is empty, query stands without gallery or the reverse, images lie
                outside the identities' folders, two folder names are one number, or too few identities to split.
        """
        require_folder(self._name, self._folder, ())
        found = list_folders(self._folder)
        return self._load_parts(found) if set(PARTS) & set(found) else self._load_and_split()

    def _load_parts(self, found: list[str]) -> ReIDData:
        extra = [name for name in found if name not in PARTS]
        alone = [part for part in ("query", "gallery") if part in found]
        if extra or len(alone) == 1:
            what = (
                f"the folder {extra[0]!r} beside {sorted(set(PARTS) & set(found))}" if extra else f"only {alone[0]!r}"
            )
            raise ValueError(
                f"dataset {self._name!r}: {str(self._folder)!r} holds {what}, expected 'train', 'query' and 'gallery' "
                "(train alone, or query and gallery alone), or one folder an identity and none of these three"
            )
        listed = {part: self._list(self._folder / part, part) for part in PARTS if part in found}
        numbers = number_identities(self._name, [[name for name, _ in images] for images in listed.values()])
        samples = {part: self._samples(self._folder / part, listed.get(part, []), numbers) for part in PARTS}
        return ReIDData(self._name, self.folder, samples["train"], samples["query"], samples["gallery"])

    def _load_and_split(self) -> ReIDData:
        listed = self._list(self._folder, "identities")
        names = [name for name, _ in listed]
        if len(names) < 2:
            raise ValueError(
                f"dataset {self._name!r}: {str(self._folder)!r} holds images of {len(names)} identities, needs at "
                "least 2: one to train and one to test"
            )
        numbers = number_identities(self._name, [names])
        count = min(max(1, round(self._test_fraction * len(names))), len(names) - 1)
        testing = set(draw_identities([numbers[name] for name in names], count, self._split_seed))
        train = [entry for entry in listed if numbers[entry[0]] not in testing]
        test = self._samples(self._folder, [entry for entry in listed if numbers[entry[0]] in testing], numbers)
        note = f"{count} of {len(names)} identities drawn for testing (seed {self._split_seed}), each image a query"
        return ReIDData(self._name, self.folder, self._samples(self._folder, train, numbers), test, test, (note,))

    def _list(self, folder: Path, part: str) -> list[tuple[str, list[str]]]:
        """Each identity that has images, and their file names; both sorted."""
        loose = list_images(folder)
        if loose:
            raise ValueError(
                f"dataset {self._name!r}: {len(loose):,} images lie right in {str(folder)!r}, the first {loose[0]!r}, "
                "expected one folder an identity, with the images in it"
            )
        listed = [(name, list_images(folder / name)) for name in list_folders(folder)]
        listed = [(name, images) for name, images in listed if images]
        if not listed:
            raise ValueError(empty_part(self._name, folder, part))
        return listed

    def _samples(self, folder: Path, listed: list[tuple[str, list[str]]], numbers: dict[str, int]) -> Samples:
        paths = tuple(str(folder / name / image) for name, images in listed for image in images)
        pids = np.repeat([numbers[name] for name, _ in listed], [len(images) for _, images in listed])
        return Samples(paths, {"pid": pids.astype(np.int64)})
