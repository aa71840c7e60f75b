"""What is wrong with a configuration, and where it was written."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass


class ConfigError(Exception):
    """Something in a config file or on the command line is wrong; its text is one sentence for the user.

    Every error of this package is one of the three subclasses, which are also the builtin error of that kind.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConfigKeyError(ConfigError, KeyError):
    """A key that does not exist, exists twice, or has no value."""


class ConfigValueError(ConfigError, ValueError):
    """A value, a file or a combination of keys that cannot be used."""


class ConfigTypeError(ConfigError, TypeError):
    """A value of another type than the key's, or a config that cannot be changed."""


@dataclass(frozen=True)
class Origin:
    """Where a value was written.

    Args:
        source: the file as the user would name it, or a word such as "the command line".
        line: the line in that file, from 1; None where there are no lines.
    """

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


COMMAND_LINE = Origin("command line")


def nearest(name: str, known: Collection[str]) -> str | None:
    """The full key in ``known`` that ``name`` was most likely meant to be; None where nothing is close.

    The last part counts too, so that a key without its section finds its way:

    >>> nearest("BASE_LR", ["SOLVER.BASE_LR", "SOLVER.GAMMA"])
    'SOLVER.BASE_LR'
    >>> nearest("solver.gama", ["SOLVER.BASE_LR", "SOLVER.GAMMA"])
    'SOLVER.GAMMA'
    >>> nearest("XYZ", ["SOLVER.GAMMA"]) is None
    True
    """

    full = _ranked(name, {candidate: candidate for candidate in known})
    if full and full[0][0] >= 0.85:
        return full[0][1]
    leaf = _ranked(name.rpartition(".")[2], {candidate: candidate.rpartition(".")[2] for candidate in known})
    if leaf and leaf[0][0] >= 0.8 and (len(leaf) == 1 or leaf[1][0] < leaf[0][0]):  # ENABLED alone says nothing
        return leaf[0][1]
    return full[0][1] if full and full[0][0] >= 0.7 else None


def _ranked(name: str, candidates: dict[str, str]) -> list[tuple[float, str]]:
    """(likeness, candidate) of the two whose text is most like ``name``, best first."""
    scores = [
        (difflib.SequenceMatcher(None, name.upper(), text.upper()).ratio(), candidate)
        for candidate, text in candidates.items()
    ]
    return sorted(scores, key=lambda scored: -scored[0])[:2]


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The tail of a sentence that suggests the nearest key, empty where nothing is close."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""
