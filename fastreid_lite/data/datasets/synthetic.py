"""Rendered pedestrians in Market-1501's layout and naming: a re-identification task that needs no download."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fastreid_lite.data.datasets.generated_folder import GeneratedFolder
from fastreid_lite.data.datasets.market1501 import DISTRACTOR, FOLDERS, JUNK, read_market_layout
from fastreid_lite.data.datasets.parts import under_root
from fastreid_lite.data.datasets.pedestrians.people import draw_people
from fastreid_lite.data.datasets.pedestrians.studio import Studio
from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.samples import ReIDData

RENDERER = 1
"""Raised whenever other pixels come from the same settings, so that old folders are not taken for new ones."""
JPEG_QUALITY = 92


class Picture(NamedTuple):
    """One file: its name relative to the set's folder, and what Studio.shoot takes to make it."""

    file: str
    person: int
    camera: int
    shot: int
    loose: bool


@DATASET_REGISTRY.register()
class SyntheticReID:
    """Rendered pedestrians: each known again by build, clothes and what is carried, through cameras of other light,
    colours, sharpness, scale and places, in other poses and behind other things.

    Written once, read as Market-1501 is. Train pids are 1 to ``train_ids``, test pids follow. Of each test identity and
    camera the first image is a query, the others are in the gallery, with ``distractors`` people seen once (pid 0) and
    ``junk`` boxes that show half a person (pid -1). The same settings give the same bytes, on one version of Pillow.

    Args:
        root: the datasets folder.
        folder: where to write, absolute or under ``root``; "" for ``synthetic_reid/<settings>`` under ``root``.
        train_ids, test_ids: identities, at least 2 and 1.
        cameras: at least 2.
        images_per_camera: of each identity, at least 2.
        distractors, junk: further images in the gallery, 0 or more.
        size: height and width of an image in pixels, at least 32 and 16.
        seed: 0 or more.

    Raises:
        ValueError: a setting is out of range.
        TypeError: a setting is no integer.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        folder: str = "",
        train_ids: int = 128,
        test_ids: int = 32,
        cameras: int = 4,
        images_per_camera: int = 4,
        distractors: int = 32,
        junk: int = 8,
        size: Sequence[int] = (128, 64),
        seed: int = 0,
    ) -> None:
        if len(size) != 2:
            raise ValueError(
                f"size (DATASETS.SYNTHETIC.SIZE) is {list(size)}, expected height and width in pixels: [128, 64]"
            )
        self._train_ids = _at_least(2, train_ids, "train_ids")
        self._test_ids = _at_least(1, test_ids, "test_ids")
        self._cameras = _at_least(2, cameras, "cameras")
        self._images_per_camera = _at_least(2, images_per_camera, "images_per_camera")
        self._distractors = _at_least(0, distractors, "distractors")
        self._junk = _at_least(0, junk, "junk")
        self._size = _at_least(32, size[0], "size"), _at_least(16, size[1], "size")
        self._seed = _at_least(0, seed, "seed")
        self._folder = under_root(root, folder or f"synthetic_reid/{self._key()}")

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Arguments from DATASETS.SYNTHETIC."""
        node = cfg.DATASETS.SYNTHETIC
        names = ("folder", "train_ids", "test_ids", "cameras", "images_per_camera") + (
            "distractors",
            "junk",
            "size",
            "seed",
        )
        return {name: getattr(node, name.upper()) for name in names}

    @property
    def folder(self) -> str:
        """Where it looks and, where nothing is there, writes."""
        return str(self._folder)

    def missing(self) -> str | None:
        """What is not there, in words; None where all is."""
        if self._generated().is_complete():
            return None
        return f"{sum(1 for _ in self._pictures()):,} images, written when first used"

    def load(self) -> ReIDData:
        """Read the set, after writing it where it is not there yet.

        Raises:
            ValueError: the folder holds something else, or cannot be written.
        """
        self._generated().ensure(self._write)
        return read_market_layout("SyntheticReID", self._folder, cameras=self._cameras)

    def _settings(self) -> dict[str, Any]:
        return {
            "TRAIN_IDS": self._train_ids,
            "TEST_IDS": self._test_ids,
            "CAMERAS": self._cameras,
            "IMAGES_PER_CAMERA": self._images_per_camera,
            "DISTRACTORS": self._distractors,
            "JUNK": self._junk,
            "SIZE": list(self._size),
            "SEED": self._seed,
            "RENDERER": RENDERER,
        }

    def _key(self) -> str:
        """The settings as a folder's name: the main ones to read, all of them in a hash."""
        digest = hashlib.sha256(json.dumps(self._settings(), sort_keys=True).encode()).hexdigest()[:8]
        return f"ids{self._train_ids}+{self._test_ids}_cameras{self._cameras}_seed{self._seed}_{digest}"

    def _generated(self) -> GeneratedFolder:
        return GeneratedFolder(
            self._folder,
            writer="SyntheticReID",
            settings=self._settings(),
            files=[picture.file for picture in self._pictures()],
            config_key="DATASETS.SYNTHETIC.FOLDER",
        )

    def _pictures(self) -> Iterator[Picture]:
        """Everything to render. People are numbered train, test, distractors."""
        known = self._train_ids + self._test_ids
        for person in range(known):
            for camera in range(self._cameras):
                for shot in range(self._images_per_camera):
                    part = "train" if person < self._train_ids else "gallery" if shot else "query"
                    yield Picture(_file(part, person + 1, camera, shot), person, camera, shot, False)
        for index in range(self._distractors):
            camera = index % self._cameras
            yield Picture(_file("gallery", DISTRACTOR, camera, index), known + index, camera, 0, False)
        for index in range(self._junk):
            camera, person = index % self._cameras, self._train_ids + index % self._test_ids
            shot = self._images_per_camera + index  # beyond the shots of the identity itself
            yield Picture(_file("gallery", JUNK, camera, index), person, camera, shot, True)

    def _write(self, folder: Path) -> None:
        for name in FOLDERS.values():
            (folder / name).mkdir()
        people = draw_people(self._train_ids + self._test_ids + self._distractors, self._seed)
        studio = Studio(people, cameras=self._cameras, size=self._size, seed=self._seed)
        for picture in self._pictures():
            image = studio.shoot(picture.person, picture.camera, picture.shot, loose=picture.loose)
            image.save(folder / picture.file, format="JPEG", quality=JPEG_QUALITY)


def _file(part: str, pid: int, camera: int, shot: int) -> str:
    """A file name as Market-1501's: pid, camera and sequence from 1, frame number, box number."""
    number = "-1" if pid == JUNK else f"{pid:04d}"
    return f"{FOLDERS[part]}/{number}_c{camera + 1}s1_{151 + 25 * shot:06d}_00.jpg"


def _at_least(least: int, value: int, name: str) -> int:
    key = f"DATASETS.SYNTHETIC.{name.upper()}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} ({key}) is {value!r}, expected an integer of at least {least}")
    if value < least:
        raise ValueError(f"{name} ({key}) is {value}, expected at least {least}")
    return value
