"""Nested dicts as flat ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(tree: Mapping[str, Any], separator: str = "/", *, prefix: str = "") -> dict[str, Any]:
    """The leaves of nested dicts by their path.

    >>> flatten({"Market1501": {"mAP": 86.0}, "loss": 1.0})
    {'Market1501/mAP': 86.0, 'loss': 1.0}

    Args:
        separator: between the names of a path.
        prefix: before every path.
    """
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, separator, prefix=f"{prefix}{name}{separator}"))
        else:
            flat[f"{prefix}{name}"] = value
    return flat
