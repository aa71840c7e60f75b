"""A dataset made of another one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from fastreid_lite.data import ReIDData
from fastreid_lite.data.datasets import DATASET_REGISTRY, open_dataset


@DATASET_REGISTRY.register()
class FewShotReID:
    """Any dataset with only a few images of each training identity; query and gallery stay whole.

    Args:
        root: the datasets folder, which every dataset is given; the other dataset knows where it lies.
        base: the other dataset.
        shots: images to keep of each training identity, >= 1.
        seed: of the draw.
    """

    def __init__(self, root: Path, *, base: Any, shots: int, seed: int = 0) -> None:
        if shots < 1:
            raise ValueError(f"PAPER.SHOTS is {shots}, expected at least 1 image of each identity")
        self._base = base
        self._shots = shots
        self._seed = seed

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from PAPER and DATASETS.SPLIT_SEED."""
        base = open_dataset(cfg, cfg.PAPER.BASE)
        return {"base": base, "shots": cfg.PAPER.SHOTS, "seed": cfg.DATASETS.SPLIT_SEED}

    @property
    def folder(self) -> str:
        """Where it looks."""
        return str(self._base.folder)

    def load(self) -> ReIDData:
        """Read the other dataset, and leave out what is too much."""
        data: ReIDData = self._base.load()
        pids = data.train.pids
        shuffled = np.random.default_rng(self._seed).permutation(len(pids))
        kept = np.concatenate([shuffled[pids[shuffled] == pid][: self._shots] for pid in np.unique(pids)])
        note = f"{len(kept)} of {len(pids)} training images kept, {self._shots} of each identity at most"
        return dataclasses.replace(data, train=data.train.select(np.sort(kept)), notes=(*data.notes, note))
