"""What a writer is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastreid_lite.storage.event_storage import EventStorage, Value, get_event_storage


class EventWriter:
    """Takes published numbers somewhere. Lives on rank 0 only.

    A subclass overrides :meth:`write_values`, which gets what this writer has not seen yet; or :meth:`write`, which
    reads ``get_event_storage()`` itself.
    """

    def __init__(self) -> None:
        self._seen = 0

    def write(self) -> None:
        """Write what was published since the last call; nothing where there is nothing new."""
        fresh = self.fresh(get_event_storage())
        if fresh:
            self.write_values(fresh)

    def fresh(self, storage: EventStorage) -> dict[str, Value]:
        """What was published since the last call, by name, in order of iteration."""
        found = {name: value for name, value in storage.published().items() if value.serial > self._seen}
        self._seen = max((value.serial for value in found.values()), default=self._seen)
        return dict(sorted(found.items(), key=lambda item: (item[1].iteration, item[1].serial)))

    def write_values(self, values: dict[str, Value]) -> None:
        """Write ``values``, at least one."""
        raise NotImplementedError(f"{type(self).__name__} must define write_values or write")

    def close(self) -> None:
        """Called once, at the end of the run, however it ends."""

    def start_anew(self) -> Path | None:
        """Move what an earlier run left where this writer writes aside; where it is now, None where nothing was."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """How far this writer is."""
        return {"seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to where :meth:`state_dict` was taken: what was written since is taken back where that can be."""
        self._seen = state["seen"]
