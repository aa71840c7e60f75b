"""Splitting what stands on the command line into keys and values, before any config is at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from .errors import ConfigKeyError, did_you_mean

_KEY = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_KEY_AND_VALUE = re.compile(rf"({_KEY.pattern})=(.*)", re.DOTALL)
FORM = "options are KEY VALUE or KEY=VALUE, as in SOLVER.BASE_LR 1e-3"


def split_options(tokens: Sequence[Any], *, known: Collection[str] = ()) -> list[tuple[str, Any]]:
    """``["A.B", "1", "C=2"]`` as ``[("A.B", "1"), ("C", "2")]``.

    Args:
        tokens: keys, values and ``KEY=VALUE``, mixed; a value may be any Python value.
        known: full key names. One of them where a value is expected means that the value was forgotten.

    Raises:
        ConfigKeyError: a token is left over or a key has no value; the message says which, and the form expected.

    >>> split_options(["SOLVER.BASE_LR", "-1e-3", "MODEL.WEIGHTS=a=b.pth"])
    [('SOLVER.BASE_LR', '-1e-3'), ('MODEL.WEIGHTS', 'a=b.pth')]
    """
    pairs: list[tuple[str, Any]] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        both = _KEY_AND_VALUE.fullmatch(token) if isinstance(token, str) else None
        if both:
            pairs.append((both.group(1), both.group(3)))
            position += 1
            continue
        if not isinstance(token, str) or not _KEY.fullmatch(token):
            raise ConfigKeyError(f"{token!r} is left over: {_why_no_key(token)}; {FORM}")
        value = tokens[position + 1] if position + 1 < len(tokens) else None
        if position + 1 == len(tokens) or _is_option(value, known):
            raise ConfigKeyError(_no_value(token, value, known))
        if isinstance(value, str) and value.strip() in ("\\", "") and value:
            raise ConfigKeyError(f"{token} is followed by {value!r}, a stray backslash or blank; {FORM}")
        pairs.append((token, value))
        position += 2
    return pairs


def _is_option(value: Any, known: Collection[str]) -> bool:
    """Whether what stands at the place of a value is the next option."""
    if not isinstance(value, str):
        return False
    both = _KEY_AND_VALUE.fullmatch(value)
    return (both.group(1) if both else value) in known


def _no_value(token: str, follower: Any, known: Collection[str]) -> str:
    after = f" ({follower} follows)" if follower is not None else ""
    if token in known:
        return f"{token} has no value{after}: {FORM}"
    return f"{token!r} is left over{after}: no key of this name, and no value{did_you_mean(token, known)}; {FORM}"


def _why_no_key(token: Any) -> str:
    if isinstance(token, str) and token.strip() in ("\\", ""):
        return "a stray backslash or blank"
    return "it is no key"
