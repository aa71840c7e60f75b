"""A tool as a module, so that a test can call its functions."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.toy_run import ROOT


def load_tool(name: str) -> ModuleType:
    """The module of ``tools/NAME.py``, made anew."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
