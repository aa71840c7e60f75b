"""The one way to look a name up."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Registry:
    """A table from names to objects, with errors that help.

    >>> LOSSES = Registry("loss", "MODEL.LOSSES.NAME")
    >>> @LOSSES.register()
    ... class MyLoss: ...
    >>> LOSSES.get("MyLoss") is MyLoss
    True

    Args:
        kind: what an entry is, for messages ("loss", "dataset").
        config_key: the config key whose value is looked up here, for messages; None where there is none.
    """

    def __init__(self, kind: str, config_key: str | None = None) -> None:
        self.kind = kind
        self.config_key = config_key
        self._entries: dict[str, Any] = {}

    def register(self, obj: T | None = None, *, name: str | None = None) -> Any:
        """Add ``obj`` under ``name`` (its ``__name__`` where None); without ``obj``, a decorator that does so.

        Raises:
            KeyError: the name is taken by another object. The same object may be registered again.
        """
        if obj is None:

            def decorate(decorated: T) -> T:
                self._add(decorated, name)
                return decorated

            return decorate
        self._add(obj, name)
        return obj

    def _add(self, obj: Any, name: str | None) -> None:
        key = name if name is not None else obj.__name__
        if key in self._entries and self._entries[key] is not obj:
            raise KeyError(f"the {self.kind} {key!r} is registered already, by {self._entries[key]!r}")
        self._entries[key] = obj

    def get(self, name: str) -> Any:
        """The object registered as ``name``.

        Raises:
            KeyError: no such name; the message lists the names and suggests the nearest.
        """
        if isinstance(name, str) and name in self._entries:
            return self._entries[name]
        raise KeyError(self.unknown(name))

    def unknown(self, name: str) -> str:
        """The sentence that says that ``name`` is not known and which names are."""
        near = difflib.get_close_matches(str(name), self._entries, n=1, cutoff=0.5)
        where = f" ({self.config_key})" if self.config_key else ""
        hint = f"; did you mean {near[0]!r}?" if near else "."
        return f"unknown {self.kind} {name!r}{where}{hint} Known: {', '.join(sorted(self._entries)) or 'none'}"

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(sorted(self._entries.items()))

    def __len__(self) -> int:
        return len(self._entries)


def lookup(table: dict[str, Callable[..., Any]], name: str, kind: str, config_key: str | None = None) -> Any:
    """``table[name]`` with a :class:`Registry`'s error; for closed choices that nobody registers into."""
    registry = Registry(kind, config_key)
    registry._entries = dict(table)
    return registry.get(name)
