"""A value as it was written, before the type of its key decides what it is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from .errors import ConfigValueError, Origin

NULLS = ("", "~", "null", "Null", "NULL", "None")
_VARIABLE = re.compile(r"\$\$\{|\$\{(\w+)\}|\$\{", re.ASCII)


@dataclass(frozen=True)
class Scalar:
    """One written word: its text, and whether quotes stood around it (then it is never null or a number by guess)."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Given:
    """A written value and where it was written.

    Args:
        value: a :class:`Scalar`, a list of :class:`Given`, a dict of them by key (a section), or a Python value.
        origin: its place.
    """

    value: Any
    origin: Origin


def is_null(value: Any) -> bool:
    """Whether ``value`` is null: None, or an unquoted empty word, ``~``, ``null`` or ``None``."""
    if isinstance(value, Given):
        return is_null(value.value)
    return value is None or (isinstance(value, Scalar) and not value.quoted and value.text in NULLS)


def expand_variables(text: str, *, key: str, origin: Origin) -> str:
    """``text`` with each ``${NAME}`` replaced by the environment variable NAME; ``$${`` stands for a plain ``${``.

    Raises:
        ConfigValueError: the variable is not set, or the braces do not hold a name.
    """

    def replace(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        name = match.group(1)
        if name is None:
            raise ConfigValueError(f"{key}: in {text!r} write ${{NAME}}, or '$${{' for a plain '${{' ({origin})")
        if name not in os.environ:
            raise ConfigValueError(f"{key}: the environment variable {name} in {text!r} is not set ({origin})")
        return os.environ[name]

    return _VARIABLE.sub(replace, text)


def escape_variables(text: str) -> str:
    """The text that :func:`expand_variables` turns into ``text``.

    >>> expand_variables(escape_variables("${HOME}"), key="", origin=Origin(""))
    '${HOME}'
    """
    return text.replace("${", "$${")
