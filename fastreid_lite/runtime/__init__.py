"""Where it computes: the one floor that knows the names of devices."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
    "Runtime": "base",
    "RUNTIME_REGISTRY": "registry",
    "get_runtime": "registry",
    "register": "registry",
    "resolve_device": "registry",
    "to": "registry",
}
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
