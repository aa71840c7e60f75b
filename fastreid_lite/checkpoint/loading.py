"""Reading a checkpoint without running what is in it."""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from fastreid_lite.checkpoint.errors import CheckpointError

_REFUSED = (
    "reading such a file can run code in it, so it is refused; if you trust where it comes from, take the weights out "
    "once, in a Python of its own: `old = {read}`, then "
    "`torch.save(old.get('model', old) if isinstance(old, dict) else old.state_dict(), NEW)`"
)
_REFUSED_TORCH = _REFUSED.format(read="torch.load(OLD, weights_only=False, map_location='cpu')")
_REFUSED_PICKLE = _REFUSED.format(read="pickle.load(open(OLD, 'rb'))")


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """The content of a checkpoint, tensors on the CPU.

    Always under torch's guard (``weights_only=True``): a file that asks for code to be run is refused, and there is no
    second try without the guard.

    Raises:
        CheckpointError: no such file, not readable, damaged, not a checkpoint, or holding Python objects.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(f"there is no checkpoint at {path}")
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; expected a checkpoint file, as {path / 'model_final.pth'}")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with warnings.catch_warnings():
            # torch warns of file formats that it then refuses; the error below says it better.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
            _check_bytes(path)
    except Exception as error:
        # A damaged file is reported by half a dozen types, depending on the byte at which it ends.
        raise CheckpointError(_reason(path, error)) from error
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{path} holds a {type(content).__name__}; expected a dict of weights or of a run's state"
        )
    return content


def _check_bytes(path: Path) -> None:
    """Compare each part of the file with the checksum that it carries, which torch does not do."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            damaged = parts.testzip()
        if damaged is not None:
            raise ValueError(f"the bytes of {damaged} are not those that were written")


def _reason(path: Path, error: Exception) -> str:
    """One sentence for what ``torch.load`` said."""
    text = str(error)
    asked_for = re.search(r"(?:[Uu]nsupported global:? (?:GLOBAL )?|Unsupported class |GLOBAL )([\w.]+)", text)
    if asked_for is not None:
        name = asked_for.group(1)
        what = "a whole pickled module, not weights" if name.startswith("torch.nn.") else "Python objects"
        return f"{path} holds {what} ({name}), and {_REFUSED_TORCH}"
    with open(path, "rb") as file:
        start = file.read(2)
    if not start:
        return f"{path} is empty: writing it did not end; use another checkpoint"
    if start[0] == 0x80 and start[-1] in (3, 4, 5):  # the first opcode of a pickle, and its protocol; torch writes 2
        return f"{path} is a pickle that was not written by torch.save, and {_REFUSED_PICKLE}"
    cause = text.partition("WeightsUnpickler error:")[2] or text
    cause = next((line.strip() for line in cause.splitlines() if line.strip()), "").partition(". ")[0][:160]
    return (
        f"{path} ({path.stat().st_size} bytes) is damaged or no checkpoint ({type(error).__name__}: {cause}); use "
        f"another checkpoint"
    )
