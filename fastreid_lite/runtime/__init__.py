"""Where it computes: the one floor that knows the names of devices."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "Runtime": "base",
    "RUNTIME_REGISTRY": "registry",
    "get_runtime": "registry",
    "register": "registry",
    "resolve_device": "registry",
    "to": "registry",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
