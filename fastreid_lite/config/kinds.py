"""What type a key has. It is that of its default, except where `schema.KINDS` says more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """The type of a key.

    Args:
        name: ``bool``, ``int``, ``float`` (an int becomes one), ``number`` (int or float, kept), ``str``, ``list``,
            ``tuple``, or ``any``.
        element: the kind of each element of a list or tuple; None for the others.
        optional: whether None is a value.
        finite: whether NaN and infinities are refused.
    """

    name: str
    element: Kind | None = None
    optional: bool = False
    finite: bool = True

    def __str__(self) -> str:
        article = "an" if self.name == "int" else "a"
        text = (
            "a value"
            if self.name == "any"
            else "an int or a float"
            if self.name == "number"
            else f"{article} {self.name}"
        )
        if self.element is not None and self.element.name != "any":
            text += f" of {'numbers' if self.element.name == 'number' else self.element.name + 's'}"
        return text + (" or None" if self.optional else "")


def kind_of(value: Any) -> Kind:
    """The kind of a key whose default is ``value``.

    None gives ``any``: it says nothing. A default that is not finite allows others that are not.

    >>> str(kind_of([30, 55])), str(kind_of(("a",))), str(kind_of(0.1)), str(kind_of([0.16, 1]))
    ('a list of ints', 'a tuple of strs', 'a float', 'a list of numbers')
    """
    if isinstance(value, (list, tuple)):
        return Kind("tuple" if isinstance(value, tuple) else "list", element=_element(value))
    if isinstance(value, float):
        return Kind("float", finite=math.isfinite(value))
    for python_type in (bool, int, str):
        if isinstance(value, python_type):
            return Kind(python_type.__name__)
    return Kind("any", finite=False)


def _element(values: list[Any] | tuple[Any, ...]) -> Kind:
    kinds = {kind_of(value) for value in values}
    if len(kinds) == 1:
        return kinds.pop()
    if {kind.name for kind in kinds} == {"int", "float"}:
        return Kind("number", finite=all(kind.finite for kind in kinds))
    return Kind("any", finite=False)
