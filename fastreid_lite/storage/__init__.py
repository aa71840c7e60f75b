"""What happened in a run: numbers, kept on the device until somebody reads them."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "EventStorage": "event_storage",
    "get_event_storage": "event_storage",
    "has_event_storage": "event_storage",
    "Value": "event_storage",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
