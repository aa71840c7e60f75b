"""What happened in a run: numbers, kept on the device until somebody reads them."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "EventStorage": "event_storage",
    "get_event_storage": "event_storage",
    "has_event_storage": "event_storage",
    "Value": "event_storage",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
