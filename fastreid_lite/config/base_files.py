"""Config files that build on others: the ``_BASE_`` key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigTypeError, ConfigValueError, Origin
from .written import Given, Scalar, expand_variables, is_null
from .yaml_reader import read_document, show_path

BASE_KEY = "_BASE_"


@dataclass(frozen=True)
class Document:
    """One config file: its path, and what it gives, section by section, without ``_BASE_``."""

    path: Path
    tree: dict[str, Given]


def load_chain(path: str | os.PathLike[str]) -> list[Document]:
    """The file at ``path`` and all its bases, in the order in which they are to be merged: later wins.

    ``_BASE_`` is one path or a list of them, each absolute, from ``~``, or relative to the folder of the file that
    names it. A file stands after its own bases, and those of a list in the order given; a file that is named more than
    once is merged once, at its first place, so that what two bases share undoes nothing.

    Raises:
        ConfigValueError: a base that does not exist (names both files), or a circle (names the chain).
    """
    documents: list[Document] = []
    _add_with_bases(Path(path).expanduser(), [], set(), documents)
    return documents


def _add_with_bases(path: Path, chain: list[Path], done: set[str], documents: list[Document]) -> None:
    identity = os.path.realpath(path)
    if identity in done:
        return
    if identity in [os.path.realpath(parent) for parent in chain]:
        circle = " -> ".join(show_path(part) for part in [*chain, path])
        raise ConfigValueError(f"the base files go in a circle: {circle}")
    tree = dict(read_document(path))
    bases = tree.pop(BASE_KEY, None)
    for base, origin in _base_paths(bases, path) if bases is not None else []:
        if not base.is_file():
            raise ConfigValueError(f"{BASE_KEY} names a file that is not there: {show_path(base)} ({origin})")
        _add_with_bases(base, [*chain, path], done, documents)
    done.add(identity)
    documents.append(Document(path, tree))


def _base_paths(bases: Given, path: Path) -> list[tuple[Path, Origin]]:
    items = bases.value if isinstance(bases.value, list) else [bases]
    paths = []
    for item in items:
        if not isinstance(item.value, Scalar) or is_null(item) or not item.value.text:
            raise ConfigTypeError(f"{BASE_KEY} takes a path or a list of paths ({item.origin})")
        text = expand_variables(item.value.text, key=BASE_KEY, origin=item.origin)
        base = path.parent / Path(text).expanduser()
        if "\\" in text and not base.is_file():  # written on Windows
            base = path.parent / Path(text.replace("\\", "/")).expanduser()
        paths.append((base, item.origin))
    return paths
