"""OUTPUT_DIR: one folder, one run. Imports no torch, so that what is wrong is said at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint.names import POINTER_NAME, SUFFIX
from fastreid_lite.config.errors import ConfigValueError

# Folders that this process holds, with the open lock file of each.
_HELD: dict[str, int] = {}


def has_checkpoint(folder: Path) -> bool:
    """True where a run has published a checkpoint in ``folder``."""
    return (folder / POINTER_NAME).exists() or any(folder.glob(f"*{SUFFIX}"))


def hold_output_dir(folder: Path) -> None:
    """Keep other runs out of ``folder`` for as long as this process lives; called by the process that writes.

    Raises:
        ConfigValueError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # where the system has no such locks
        return
    key = str(folder.resolve())
    if key in _HELD:
        return
    file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise ConfigValueError(
            f"OUTPUT_DIR {folder} is being written by another run now: wait for it, or give another folder"
        ) from None
    except OSError:  # a file system without locks
        os.close(file)
        return
    _HELD[key] = file


def check_output_dir(cfg: Any, *, resume: bool | str, eval_only: bool) -> Path:
    """OUTPUT_DIR, made where it is not there, if this run may write into it.

    Raises:
        ConfigValueError: it holds the checkpoints of another run and this one does not resume; it cannot be made or
            written; or it is a file.
    """
    folder = Path(cfg.OUTPUT_DIR).expanduser()
    occupied = not eval_only and folder.is_dir() and has_checkpoint(folder)
    if occupied and isinstance(resume, str) and Path(resume).expanduser().resolve().parent != folder.resolve():
        raise ConfigValueError(
            f"--resume={resume} is of another run than the checkpoints in OUTPUT_DIR {folder}, and runs are not mixed: "
            f"give another folder (OUTPUT_DIR PATH)"
        )
    if occupied and not resume:
        raise ConfigValueError(
            f"OUTPUT_DIR {folder} holds the checkpoints of another run, and runs are not mixed: go on with that one by "
            f"--resume, or give another folder (OUTPUT_DIR PATH)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigValueError(
            f"OUTPUT_DIR {folder} cannot be made: {error.strerror or error}; give another folder (OUTPUT_DIR PATH)"
        ) from None
    if not os.access(folder, os.W_OK):
        raise ConfigValueError(f"OUTPUT_DIR {folder} cannot be written to; give another folder (OUTPUT_DIR PATH)")
    return folder
