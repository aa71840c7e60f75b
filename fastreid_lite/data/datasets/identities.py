"""Identities as numbers: from words, and drawn at random."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

_DIGITS = re.compile(r"\d{1,18}", re.ASCII)


def number_identities(dataset: str, parts: Sequence[Iterable[str]]) -> dict[str, int]:
    """A pid for each name, the same in all parts.

    Args:
        dataset: its name, for the message.
        parts: the names in each part of the set.

    Returns:
        Name to pid: the number that it is where every name of every part is digits alone ("0007" is 7), else its
        position in sorted order.

    Raises:
        ValueError: two names of one part are the same number ("7" and "007").

    >>> number_identities("toy", [["10", "9"], ["0010"]])
    {'0010': 10, '10': 10, '9': 9}
    >>> number_identities("toy", [["10", "9"], ["ann"]])
    {'10': 0, '9': 1, 'ann': 2}
    """
    listed = [list(names) for names in parts]
    every = sorted({name for names in listed for name in names})
    if not all(_DIGITS.fullmatch(name) for name in every):
        return {name: position for position, name in enumerate(every)}
    for names in listed:
        seen: dict[int, str] = {}
        for name in sorted(names):
            other = seen.setdefault(int(name), name)
            if other != name:
                raise ValueError(
                    f"dataset {dataset!r}: the identities {other!r} and {name!r} in one part are the same number "
                    f"{int(name)}; rename one of them, or join them"
                )
    return {name: int(name) for name in every}


def draw_identities(pids: Iterable[int], count: int, seed: int) -> list[int]:
    """``count`` of the ``pids``, sorted; a function of the set of pids, ``count`` and ``seed``.

    >>> draw_identities([3, 1, 2, 3], 2, 0) == draw_identities([1, 2, 3], 2, 0)
    True
    """
    distinct = np.unique(np.fromiter(pids, dtype=np.int64))
    return sorted(int(pid) for pid in np.random.default_rng(seed).permutation(distinct)[:count])
