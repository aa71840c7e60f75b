"""Files that are there whole or not at all, whenever the process, or the machine, stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_TEMPORARY_SUFFIX = ".fastreid_lite.tmp"


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A file to write in the place of ``path``; when the block ends it takes that place.

    It lies in the same folder, since only within one file system a rename is atomic. At the end it is flushed to the
    disk, renamed over ``path``, and the folder is flushed, so that neither a kill nor a power cut leaves part of a
    file. Where anything fails the old file stays and the new one is removed.

    Raises:
        OSError: it could not be written; the message names ``path`` and the cause.
    """
    path = Path(path)
    # The process id keeps two processes that write one file from mixing their halves.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY_SUFFIX}")
    try:
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, path)
    except OSError as error:
        _remove_quietly(temporary)
        raise _explained(error, path) from error
    except BaseException:
        _remove_quietly(temporary)
        raise
    try:
        _flush_to_disk(path.parent)
    except OSError as error:
        raise OSError(
            error.errno, f"{path.name} is complete, but its folder could not be flushed to the disk: {error.strerror}"
        ) from error


def atomic_write_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all; see :func:`atomic_path` for errors."""
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(data)


def atomic_write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all; see :func:`atomic_path` for errors."""
    atomic_write_bytes(path, text.encode("utf-8"))


def atomic_torch_save(obj: Any, path: str | Path) -> None:
    """``torch.save`` to ``path``, whole or not at all.

    Raises:
        OSError: it could not be written, for a full disk too (where ``torch.save`` has an error of its own).
    """
    import torch

    with atomic_path(path) as temporary:
        # An empty file first: opening it tells a missing or read-only folder by the system's own words, torch does not.
        with open(temporary, "wb"):
            pass
        try:
            torch.save(obj, temporary)
        except RuntimeError as error:
            # Given a name torch writes by itself, without a call of Python a piece, and reports a short write this way.
            raise OSError(f"the write failed ({str(error).splitlines()[0]}); is the disk full?") from error


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove temporary files that a killed process left in ``folder``; those of this process stay. What was removed."""
    ours = f".{os.getpid()}{_TEMPORARY_SUFFIX}"
    left = [path for path in sorted(folder.glob(f".*{_TEMPORARY_SUFFIX}")) if not path.name.endswith(ours)]
    for path in left:
        _remove_quietly(path)
    return left


def _flush_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows cannot open a folder; its renames are written through
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_quietly(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _explained(error: OSError, path: Path) -> OSError:
    cause = error.strerror or str(error)
    kept = "what was there before is unchanged" if path.exists() else "nothing was left there"
    message = f"could not write {path}: {cause}; {kept}"
    return OSError(error.errno, message) if error.errno is not None else OSError(message)
