"""Names that a package offers without importing what they need: torch alone takes two seconds."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def exporter(package: str, submodules: Mapping[str, str]) -> Callable[[str], Any]:
    """What a package's ``__getattr__`` calls: the object ``name``, from the submodule that has it, imported then.

    Args:
        package: the package's ``__name__``.
        submodules: name to the submodule that defines it; "" where the name is a submodule itself.

    >>> find = exporter("fastreid_lite.utils", {"Registry": "registry"})
    >>> find("Registry").__module__
    'fastreid_lite.utils.registry'
    """

    def find(name: str) -> Any:
        if name not in submodules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not submodules[name]:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(f"{package}.{submodules[name]}"), name)

    return find
