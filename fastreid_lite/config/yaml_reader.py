"""Reading one YAML file. Nothing in it is constructed here, only noted down with its line, so nothing in it can run."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigError, ConfigKeyError, ConfigTypeError, ConfigValueError, Origin
from .written import Given, Scalar, is_null

_TAG = "tag:yaml.org,2002:"
_SAFE_TAGS = frozenset(
    _TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map", "value")
)


class ConfigLoader(yaml.SafeLoader):
    """A safe loader that turns nodes into :class:`Given` and refuses keys given twice and every tag with a meaning."""

    source = "YAML"

    def read(self) -> Given | None:
        """The single document of the stream; None where it is empty."""
        node = self.get_single_node()
        return None if node is None else self._given(node, {})

    def _given(self, node: yaml.Node, memo: dict[int, Given | None]) -> Given:
        """``memo`` holds what every finished node gave, and None for those in progress."""
        origin = self._origin(node)
        known = memo.get(id(node))
        if known is not None:
            return known
        if id(node) in memo:
            raise ConfigValueError(f"a YAML alias contains itself ({origin})")
        if node.tag not in _SAFE_TAGS:
            raise ConfigValueError(f"the YAML tag {node.tag.replace(_TAG, '!!')} is not allowed ({origin})")
        memo[id(node)] = None
        value: Any
        if isinstance(node, yaml.ScalarNode):
            value = Scalar(node.value, quoted=node.style is not None)
        elif isinstance(node, yaml.SequenceNode):
            value = [self._given(item, memo) for item in node.value]
        else:
            value = self._section(node, memo)
        given = Given(value, origin)
        memo[id(node)] = given
        return given

    def _section(self, node: yaml.Node, memo: dict[int, Given | None]) -> dict[str, Given]:
        section: dict[str, Given] = {}
        merged: dict[str, Given] = {}
        lines: dict[Hashable, int | None] = {}
        for key_node, value_node in node.value:
            origin = self._origin(key_node)
            if key_node.tag == _TAG + "merge":
                for key, given in self._merged(value_node, memo).items():
                    merged.setdefault(key, given)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigKeyError(f"a key must be one word ({origin})")
            if key_node.value in lines:
                raise ConfigKeyError(
                    f"{key_node.value} is given twice in one section, in lines {lines[key_node.value]} and "
                    f"{origin.line} of {origin.source}"
                )
            lines[key_node.value] = origin.line
            section[key_node.value] = self._given(value_node, memo)
        return {**merged, **section}

    def _merged(self, node: yaml.Node, memo: dict[int, Given | None]) -> dict[str, Given]:
        """What ``<<: *name`` or ``<<: [*one, *two]`` brings in; the earlier wins."""
        given = self._given(node, memo)
        sections = given.value if isinstance(given.value, list) else [given]
        result: dict[str, Given] = {}
        for section in sections:
            if not isinstance(section.value, dict):
                raise ConfigTypeError(f"<< takes a section or a list of sections ({given.origin})")
            result = {**section.value, **result}
        return result

    def _origin(self, node: yaml.Node) -> Origin:
        return Origin(self.source, node.start_mark.line + 1)


def parse_flow_sequence(text: str) -> list[Any] | None:
    """The items of ``[a, b]`` as :class:`Scalar` or nested lists, None where ``text`` is not such a sequence."""
    loader = ConfigLoader(text)
    try:
        given = loader.read()
    except (yaml.YAMLError, ConfigError, RecursionError):
        return None
    finally:
        loader.dispose()
    return _without_origin(given) if given is not None and isinstance(given.value, list) else None


def _without_origin(given: Given) -> Any:
    return [_without_origin(item) for item in given.value] if isinstance(given.value, list) else given.value


def show_path(path: Path) -> str:
    """``path`` from the current folder where it lies below it, else in full."""
    full, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(full, here) if full.startswith(here.rstrip(os.sep) + os.sep) else full


def read_document(path: Path) -> dict[str, Given]:
    """What the file gives, by key; ``_BASE_`` still in it. An empty file gives nothing.

    Raises:
        ConfigValueError: no such file, not UTF-8, not YAML, or a tag that would construct an object.
        ConfigKeyError: a key given twice in one section; the message has both lines.
        ConfigTypeError: the file holds a list or a word instead of keys.
    """
    name = show_path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigValueError(f"cannot read the config file {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigValueError(f"the config file {name} is not UTF-8 text (byte {error.start})") from error
    try:
        loader = ConfigLoader(text)
        loader.source = name
        given = loader.read()
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigValueError(f"not valid YAML: {error.problem or error.context} ({name}{line})") from error
    except (yaml.YAMLError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ConfigValueError(f"not valid YAML: {reason} ({name})") from error
    if given is None or is_null(given):
        return {}
    if not isinstance(given.value, dict):
        kind = "a list" if isinstance(given.value, list) else "one word"
        raise ConfigTypeError(f"a config file holds KEY: VALUE lines, this one holds {kind} ({given.origin})")
    return given.value
