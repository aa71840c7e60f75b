"""A folder of files made once by a program and reused afterwards: complete or not there, whoever else writes it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: two writers then do the work twice, and the second one's is thrown away
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
_LOGGER = logging.getLogger(__name__)


class GeneratedFolder:
    """Files that ``writer`` made from ``settings``.

    They are written into a folder beside ``folder`` and moved there in one step, so ``folder`` is never seen half
    full; a manifest with the settings, the number of files and their bytes is written last. One process writes at a
    time, the others wait and find the work done. What a killed process left is removed by the next one to write.

    Args:
        folder: where they go.
        writer: who makes them, for the manifest and for messages.
        settings: all that the files depend on; plain JSON values.
        files: their names, relative to ``folder``, with forward slashes.
        config_key: that names the folder, for messages.
    """

    def __init__(
        self, folder: Path, *, writer: str, settings: dict[str, Any], files: Sequence[str], config_key: str
    ) -> None:
        self._folder = folder
        self._writer = writer
        self._settings = settings
        self._files = files
        self._config_key = config_key

    def is_complete(self) -> bool:
        """Whether all files are there, whole, and made from these settings.

        Raises:
            ValueError: the folder holds other files than those of this writer and these settings.
        """
        if not self._folder.exists():
            return False
        manifest = self._manifest()
        if manifest is None:
            return False
        if manifest.get("settings") != self._settings:
            raise ValueError(
                f"the folder {str(self._folder)!r} ({self._config_key}) was written by {self._writer} with other "
                f"settings ({self._difference(manifest.get('settings'))}); name another folder, or delete this one"
            )
        counts = _measure(self._folder, self._files)
        return counts == (manifest.get("files"), manifest.get("bytes")) and counts[0] == len(self._files)

    def ensure(self, write: Callable[[Path], None]) -> None:
        """Have the files there: at once where they are, else by calling ``write(folder)`` with an empty folder.

        Raises:
            ValueError: as :meth:`is_complete`, or the folder cannot be written.
        """
        if self.is_complete():
            return
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._beside("lock")) as alone:
                if not self.is_complete():
                    if alone:
                        self._remove_leftovers()
                    self._write(write)
        except OSError as error:
            raise ValueError(
                f"{self._writer} cannot write into {str(self._folder)!r}: {error.strerror or error}; name a folder "
                f"that can be written ({self._config_key})"
            ) from error

    def _write(self, write: Callable[[Path], None]) -> None:
        _LOGGER.info("%s: writing %s images into %s", self._writer, f"{len(self._files):,}", self._folder)
        unfinished = self._beside(f"writing-{secrets.token_hex(4)}")
        unfinished.mkdir()
        try:
            write(unfinished)
            count, size = _measure(unfinished, self._files)
            manifest = {"writer": self._writer, "settings": self._settings, "files": count, "bytes": size}
            (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
            if self.is_complete():  # another process was faster, where there are no locks
                return
            if self._folder.exists():
                self._remove_incomplete()
            try:
                os.rename(unfinished, self._folder)
            except OSError:
                if not self.is_complete():  # else it was faster by a hair
                    raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _remove_incomplete(self) -> None:
        """Take away what is left of our own files, and nothing else."""
        ours = {MANIFEST, *self._files}
        found = sorted(
            path.relative_to(self._folder).as_posix() for path in self._folder.rglob("*") if not path.is_dir()
        )
        foreign = [name for name in found if name not in ours]
        if foreign or (found and MANIFEST not in found):
            raise ValueError(
                f"the folder {str(self._folder)!r} ({self._config_key}) holds files that {self._writer} did not write, "
                f"the first {(foreign or found)[0]!r}; name an empty or a new folder"
            )
        _LOGGER.warning("%s: the files in %s are not complete, writing them anew", self._writer, self._folder)
        shutil.rmtree(self._folder)

    def _remove_leftovers(self) -> None:
        for leftover in self._folder.parent.iterdir():
            if leftover.name.startswith(f".{self._folder.name}.writing-"):
                shutil.rmtree(leftover, ignore_errors=True)

    def _beside(self, suffix: str) -> Path:
        return self._folder.parent / f".{self._folder.name}.{suffix}"

    def _manifest(self) -> dict[str, Any] | None:
        try:
            manifest = json.loads((self._folder / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return manifest if isinstance(manifest, dict) and manifest.get("writer") == self._writer else None

    def _difference(self, theirs: Any) -> str:
        theirs = theirs if isinstance(theirs, dict) else {}
        names = [name for name in self._settings if theirs.get(name) != self._settings[name]]
        return ", ".join(f"{name} {theirs.get(name)!r}, wanted {self._settings[name]!r}" for name in names)


def _measure(folder: Path, files: Sequence[str]) -> tuple[int, int]:
    """How many of ``files`` are in ``folder``, and their bytes together."""
    sizes: dict[str, int] = {}
    for part in sorted({name.rpartition("/")[0] for name in files}):
        if (folder / part).is_dir():
            with os.scandir(folder / part) as entries:
                prefix = f"{part}/" if part else ""
                sizes.update((prefix + entry.name, entry.stat().st_size) for entry in entries if entry.is_file())
    there = [sizes[name] for name in files if name in sizes]
    return len(there), sum(there)


@contextmanager
def _locked(file: Path) -> Iterator[bool]:
    """Hold ``file`` alone while inside; False where the system or the file system has no locks.

    The system lets go of the lock when a process dies. The file stays, empty: were it removed, two processes could hold
    two files of one name.
    """
    with open(file, "a", encoding="utf-8") as stream:
        alone = fcntl is not None
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX)
            except OSError:
                alone = False
        yield alone
