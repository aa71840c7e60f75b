"""From what was written to the value of a key: one rule for files, the command line and Python.

The type of the key decides how a text is read, so ``1e-4`` is a float for a float key and ``0123`` stays ``0123`` for a
text key. In short: an int is taken where a float is asked for, a list or tuple takes the kind of the default, quoted
numbers are taken by number keys (as yacs does), and nothing else changes its type. A bare name is no list of one.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

from .errors import ConfigTypeError, ConfigValueError, Origin
from .kinds import Kind, kind_of
from .written import Given, Scalar, expand_variables, is_null
from .yaml_reader import parse_flow_sequence

_BOOLS = {
    form: value
    for value, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off")))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_INT = re.compile(r"[-+]?(0|[1-9]\d*(_\d+)*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)", re.IGNORECASE)


class _MismatchError(Exception):
    """A value is not of the kind asked for; the text is a hint for the user, or empty."""


def coerce(value: Any, kind: Kind, *, key: str, origin: Origin, expand: bool = True) -> Any:
    """``value`` as ``kind`` says, with the environment variables that its text names as ``${NAME}``.

    Args:
        value: a :class:`Scalar`, a list or dict of :class:`Given`, a Python value, or a :class:`Given` of one of them.
        kind: what the key takes.
        key: the full name, for messages.
        origin: the place, for messages; that of a :class:`Given` goes before it.
        expand: whether ``${NAME}`` is still to be replaced.

    Raises:
        ConfigTypeError: another type; the message has key, value, both types and the place.
        ConfigValueError: a number that is not finite, or an environment variable that is not set.
    """
    if isinstance(value, Given):
        value, origin = value.value, value.origin
    if isinstance(value, str):
        value = Scalar(value, quoted=True)
    if isinstance(value, Scalar) and expand:
        value = Scalar(expand_variables(value.text, key=key, origin=origin), value.quoted)
    if is_null(value) and (kind.optional or kind.name == "any"):
        return None
    try:
        read_as = guess(value) if kind.name == "any" else kind
        if read_as.element is not None:
            return _as_sequence(value, read_as, key=key, origin=origin)
        result = _READERS[read_as.name](value)
    except _MismatchError as mismatch:
        hint = f"; {mismatch}" if str(mismatch) else ""
        raise ConfigTypeError(f"{key} takes {kind}, not {described(value)} ({origin}){hint}") from None
    if kind.finite and isinstance(result, float) and not math.isfinite(result):
        raise ConfigValueError(f"{key} takes a finite number, not {shown(value)} ({origin})")
    return result


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, Scalar) and value.text in _BOOLS:
        return _BOOLS[value.text]
    raise _MismatchError("write True or False")


def _as_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Scalar) and _INT.fullmatch(value.text):
        return int(value.text)
    raise _MismatchError


def _as_number(value: Any) -> int | float:
    if isinstance(value, float):
        return value
    if isinstance(value, Scalar) and not _INT.fullmatch(value.text):
        if _FLOAT.fullmatch(value.text):
            return float(value.text)
        if _NOT_FINITE.fullmatch(value.text):
            return float(value.text.replace(".", ""))
    return _as_int(value)


def _as_float(value: Any) -> float:
    try:
        return float(_as_number(value))
    except OverflowError:  # an int of more than 308 digits
        return math.inf


def _as_text(value: Any) -> str:
    if not isinstance(value, Scalar):
        raise _MismatchError
    if is_null(value):
        raise _MismatchError("for no text write ''")
    if not value.quoted and len(value.text) > 1 and value.text[0] == value.text[-1] and value.text[0] in "'\"":
        literal = _literal(value.text)
        return literal if isinstance(literal, str) else value.text
    return value.text


_READERS: dict[str, Callable[[Any], Any]] = {
    "bool": _as_bool,
    "int": _as_int,
    "float": _as_float,
    "number": _as_number,
    "str": _as_text,
}


def guess(value: Any) -> Kind:
    """The kind of ``value`` where the key has none: a text is read as YAML 1.2 would, or as a Python tuple."""
    if isinstance(value, (list, tuple)):
        return Kind(type(value).__name__, element=Kind("any", finite=False))
    if isinstance(value, Scalar):
        if value.quoted:
            return Kind("str")
        if value.text.lower() in ("true", "false") and value.text in _BOOLS:
            return Kind("bool")
        if _INT.fullmatch(value.text):
            return Kind("int")
        if _FLOAT.fullmatch(value.text) or _NOT_FINITE.fullmatch(value.text):
            return Kind("float", finite=False)
        items = _parse_sequence(value.text) if value.text[:1] in ("[", "(") else None
        return Kind("str") if items is None else guess(items)
    if isinstance(value, (bool, int, float)):
        return kind_of(value)
    raise _MismatchError


def _as_sequence(value: Any, kind: Kind, *, key: str, origin: Origin) -> list[Any] | tuple[Any, ...]:
    items = value
    if isinstance(value, Scalar):
        items = _parse_sequence(value.text)
        if items is None and value.text[:1] == "(" and value.text[-1:] == ")":
            raise _MismatchError(f"write {value.text[:-1]},) or [{value.text[1:-1]}]")
    if not isinstance(items, (list, tuple)):
        one = isinstance(value, Scalar) and not is_null(value) and value.text[:1] not in ("", "(", "[")
        raise _MismatchError(f"write [{value.text}]" if one else "")
    assert kind.element is not None
    element, expand = kind.element, not isinstance(value, Scalar)  # a text was expanded as a whole
    values = [coerce(item, element, key=f"{key}[{i}]", origin=origin, expand=expand) for i, item in enumerate(items)]
    return tuple(values) if kind.name == "tuple" else values


def _parse_sequence(text: str) -> list[Any] | tuple[Any, ...] | None:
    """The items of ``[x, y]`` as YAML reads it, or of ``(1, 2)`` or ``1,2`` as Python does; None for other text."""
    text = text.strip()
    items = parse_flow_sequence(text) if text.startswith("[") else None
    if items is None:
        items = _literal(text)
    return items if isinstance(items, (list, tuple)) else None


def _literal(text: str) -> Any:
    """The Python literal ``text``, None where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a path is no concern of the user's
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def described(value: Any) -> str:
    """``value`` and its type, for a message: "'abc', a str"."""
    if isinstance(value, Given):
        value = value.value
    if is_null(value):
        return "an empty value" if isinstance(value, Scalar) and not value.text else "None"
    if isinstance(value, dict):
        return "a section"
    try:
        name = guess(value).name
    except _MismatchError:
        name = type(value).__name__
    return f"{shown(value)}, {'an' if name[0] in 'aeiou' else 'a'} {name}"


def shown(value: Any, depth: int = 0) -> str:
    """``value`` as a reader would write it, cut to 80 characters (an alias may hide a very large value)."""
    if isinstance(value, Given):
        return shown(value.value, depth)
    if isinstance(value, Scalar):
        text = repr(value.text) if guess(value).name == "str" else value.text
    elif isinstance(value, (list, tuple)):
        inner = "..." if depth > 1 else ", ".join(shown(item, depth + 1) for item in value[:8])
        text = f"[{inner}{', ...' if len(value) > 8 and depth < 2 else ''}]"
    elif isinstance(value, dict):
        text = "{...}"
    else:
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
