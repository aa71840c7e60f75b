"""What all datasets share: listing image files, and the check that a part is not empty."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastreid_lite.data.samples import ReIDData, Samples

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
"""What counts as an image, in either case; other files (Thumbs.db, lists) are passed over."""


@dataclass(frozen=True)
class MarketStyleData(ReIDData):
    """Data in which some pids are nobody: boxes that show no person of interest, to be ranked but never learnt.

    Args:
        distractor_pids: such pids of the gallery.
    """

    distractor_pids: frozenset[int] = field(default=frozenset({0}))


def list_images(folder: Path) -> list[str]:
    """Names of the image files right in ``folder``, sorted by code point; hidden ones (``._x.jpg``) left out."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return sorted(name for name in names if name.lower().endswith(IMAGE_EXTENSIONS) and not name.startswith("."))


def list_folders(folder: Path) -> list[str]:
    """Names of the folders right in ``folder``, sorted by code point; hidden ones left out."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def under_root(root: str | os.PathLike[str], path: str) -> Path:
    """``path`` where it is absolute, else the one under ``root``; without ``.`` and doubled slashes."""
    return Path(os.path.normpath(Path(root) / Path(path).expanduser()))


def require_folder(dataset: str, folder: Path, parts: Sequence[str]) -> None:
    """Refuse a dataset whose folder, or one of whose part folders, is not there.

    Raises:
        ValueError: naming dataset, folder and the missing parts.
    """
    missing = missing_folder(folder, parts)
    if missing is not None:
        raise ValueError(
            f"dataset {dataset!r}: {missing}; put it there, or set DATASETS.ROOT or $FASTREID_LITE_DATASETS to the "
            "folder under which the datasets lie"
        )


def missing_folder(folder: Path, parts: Sequence[str]) -> str | None:
    """What of ``folder`` and its subfolders ``parts`` is not there or cannot be read, in words; None where all is."""
    try:
        if not folder.is_dir():
            return f"{str(folder)!r} is no folder" if folder.exists() else f"the folder {str(folder)!r} does not exist"
        absent = [part for part in parts if not (folder / part).is_dir()]
    except OSError as error:  # a folder above that may not be entered
        return f"the folder {str(folder)!r} cannot be read ({error.strerror or error})"
    return f"the folder {str(folder)!r} has no subfolder {', '.join(absent)}" if absent else None


def require_part(data: ReIDData, part: str) -> Samples:
    """The samples of ``part`` ("train", "query" or "gallery") of ``data``, of which there must be some.

    Raises:
        ValueError: there are none.
    """
    samples: Samples = getattr(data, part)
    if not len(samples):
        raise ValueError(empty_part(data.name, data.folder, part))
    return samples


def empty_part(dataset: str, folder: str | os.PathLike[str], part: str, detail: str = "") -> str:
    """The sentence that says that a part holds no images."""
    return (
        f"dataset {dataset!r}: the part {part!r} in {str(folder)!r} has 0 images{detail}; it needs at least 1 "
        f"(a file ending in {', '.join(IMAGE_EXTENSIONS)})"
    )
