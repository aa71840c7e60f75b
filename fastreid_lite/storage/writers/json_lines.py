"""The log that programs read: one JSON object a line."""

from __future__ import annotations

import json
import logging
import math
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastreid_lite.storage.event_storage import Value, get_event_storage
from fastreid_lite.storage.writers.base import EventWriter

logger = logging.getLogger(__name__)

_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
# So many bytes before the stored length tell whether the file found on resume is the one that was written.
_CHECKED = 1024
_LONGEST_LINE = 2**16
_BEGINNING = b'{"iteration": '


class JSONWriter(EventWriter):
    """Appends ``{"iteration": i, name: value, ...}`` to ``json_file``, a line for each step that has new values.

    Every line is strict JSON in UTF-8; a value that is not finite is null. A value put under the name "iteration" is
    left out. A file that cannot be written costs one warning and the lines concerned, not the run.

    Args:
        json_file: the file; made at the first line.

    Raises:
        FileNotFoundError: its folder is not there. IsADirectoryError: it is a folder.
    """

    def __init__(self, json_file: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(json_file)
        if self.path.is_dir():
            raise IsADirectoryError(f"json_file is {str(self.path)!r}, a folder: give the name of a file in it")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"json_file is {str(self.path)!r}, but there is no folder {str(self.path.parent)!r}: create it first"
            )
        self._mended = False
        self._failing = False
        self._file: int | None = None

    def write(self) -> None:
        """Append what was published since the last call, every publication, in order of iteration."""
        storage = get_event_storage()
        found = storage.published_since(self._seen)
        self._seen = storage.serial
        self._append_lines(found)

    def write_values(self, values: dict[str, Value]) -> None:
        """Append ``values``."""
        self._append_lines(sorted(values.items(), key=lambda item: item[1].iteration))

    def start_anew(self) -> Path | None:
        """Move a file of an earlier run aside, to the first free name of ``metrics.json.1``, ``.2`` and so on.

        Returns:
            where it is now; None where there was none.
        """
        self.close()
        if not self.path.exists():
            return None
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.{number}")).exists():
            number += 1
        self.path.rename(aside)
        return aside

    def state_dict(self) -> dict[str, Any]:
        """How far this writer is: the length of the file in bytes and a checksum of what stands before it."""
        length = self.path.stat().st_size if self.path.exists() else 0
        return {**super().state_dict(), "length": length, "checksum": self._checksum(length)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Cut the file to the length that it had, so that no step that is done again stands in it twice.

        A file that is not the one of the state is moved aside, never cut; one that is missing costs a warning.
        """
        super().load_state_dict(state)
        self._mended = False
        length, found = state["length"], self.path.stat().st_size if self.path.exists() else None
        if found is None:
            if length:
                logger.warning(f"{self.path} is missing: the log goes on without the lines before this resume")
        elif found < length:
            logger.warning(
                f"{self.path} has {found} bytes and had {length} when the checkpoint was written: some "
                "lines of the log are lost"
            )
        elif length and self._checksum(length) == state["checksum"]:
            os.truncate(self.path, length)
        elif found:
            # With a length of 0 nothing tells whose lines these are.
            logger.warning(f"{self.path} is not the log of this checkpoint: moved to {self.start_anew()}")

    def _checksum(self, length: int) -> int:
        """Of the bytes just before ``length``."""
        if not length:
            return 0
        with open(self.path, "rb") as file:
            file.seek(max(length - _CHECKED, 0))
            return zlib.crc32(file.read(min(length, _CHECKED)))

    def _append_lines(self, found: list[tuple[str, Value]]) -> None:
        steps: dict[int, dict[str, float | None]] = {}
        for name, value in found:
            step = steps.setdefault(value.iteration, {"iteration": value.iteration})
            if name != "iteration":
                step[name] = value.value if math.isfinite(value.value) else None
        if not steps:
            return
        text = "".join(_ENCODER.encode(step) + "\n" for step in steps.values())
        try:
            self._write_bytes(text.encode("utf-8", "backslashreplace"))
            self._failing = False
        except OSError as error:
            if not self._failing:
                logger.warning(
                    f"cannot write {self.path}: {error.strerror or error}; training goes on, without the "
                    "lines that are due until it can be written again"
                )
            self._failing = True

    def _write_bytes(self, data: bytes) -> None:
        """Append ``data`` as a whole or not at all."""
        if not self._mended and self.path.exists():
            data = self._mend_end() + data
        file = self._opened()
        before, written = os.fstat(file).st_size, 0
        try:
            while written < len(data):
                written += os.write(file, data[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, before)
            raise
        self._mended = True

    def _opened(self) -> int:
        """The file, kept open between lines; opened anew where it, or its folder, was removed."""
        if self._file is not None and not os.fstat(self._file).st_nlink:
            self.close()
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        return self._file

    def close(self) -> None:
        """Let go of the file; a further line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _mend_end(self) -> bytes:
        """What must come before the next line. The half of a line, as a crash leaves it, is taken away."""
        size = self.path.stat().st_size
        with open(self.path, "rb") as file:
            file.seek(max(size - _LONGEST_LINE, 0))
            tail = file.read().rpartition(b"\n")[2]
        if not tail:
            return b""
        try:
            json.loads(tail)
        except ValueError:
            if _BEGINNING.startswith(tail[: len(_BEGINNING)]):
                os.truncate(self.path, size - len(tail))
                return b""
        return b"\n"
