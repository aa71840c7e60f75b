"""Examples are imported by name from their folder, and leave nothing behind."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fastreid_lite.data.datasets import DATASET_REGISTRY
from fastreid_lite.modeling import LOSS_REGISTRY

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """The module of an example; what it registers is taken back."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    registries = (LOSS_REGISTRY, DATASET_REGISTRY)
    modules, entries = set(sys.modules), [dict(registry._entries) for registry in registries]
    yield importlib.import_module
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(EXAMPLES)):
            del sys.modules[name]
    for registry, before in zip(registries, entries):
        registry._entries = before
