"""What a merge does to a config: checked as a whole first, then stored, so a refused merge changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base_files import BASE_KEY
from .errors import ConfigKeyError, ConfigTypeError, ConfigValueError, Origin, did_you_mean
from .kinds import Kind
from .schema import OPTIONS, TWINS
from .values import coerce, described
from .written import Given, Scalar, is_null

if TYPE_CHECKING:
    from .node import CfgNode

_ANY = Kind("any", finite=False)


@dataclass(frozen=True)
class Change:
    """One key that gets a value.

    Args:
        section: the section, existing now, that the path starts from.
        path: the key below it; longer than one where sections have to be made.
        key: the full name.
        value: the value, of the key's type.
        origin: where it was written.
    """

    section: CfgNode
    path: tuple[str, ...]
    key: str
    value: Any
    origin: Origin

    def store(self) -> None:
        section = self.section
        for name in self.path[:-1]:
            if name not in section:
                section[name] = type(section)(new_allowed=True)
            section = section[name]
            if not isinstance(section, dict):
                raise ConfigTypeError(f"{self.key}: {name} is a value, not a section ({self.origin})")
        section[self.path[-1]] = self.value


def merge_tree(root: CfgNode, tree: dict[str, Given]) -> None:
    """Merge one source (a file, or a whole command line) into ``root``.

    Raises:
        ConfigError: see :class:`CfgNode`; ``root`` is then as it was.
    """
    store_changes(list(plan(root, tree)))


def store_changes(changes: list[Change]) -> None:
    """Store the changes that one source makes; a later one to the same key wins."""
    changes = [*changes, *_twin_changes(changes)]
    for change in changes:
        if change.section.is_frozen():
            raise ConfigTypeError(f"the config is frozen: {change.key} cannot be merged ({change.origin})")
    for change in changes:
        change.store()


def plan(root: CfgNode, tree: dict[str, Given]) -> Iterator[Change]:
    """The changes that ``tree`` (from the top of ``root``) asks for, each checked."""
    yield from _plan_section(root, root, tree, "")


def _plan_section(root: CfgNode, section: CfgNode, tree: dict[str, Given], prefix: str) -> Iterator[Change]:
    for name, given in tree.items():
        key = prefix + name
        if name not in section:
            if section.is_new_allowed() or not _ignored(root, key, given):
                yield from _plan_new(section, (name,), key, given)
        elif isinstance(section[name], dict):
            if isinstance(given.value, dict):
                yield from _plan_section(root, section[name], given.value, key + ".")
            elif not (isinstance(given.value, Scalar) and is_null(given) and not given.value.text):
                # A header with nothing below it, as when all its keys are commented out, asks for nothing.
                raise ConfigTypeError(f"{key} is a section: it takes keys, not {described(given)} ({given.origin})")
        else:
            value = coerce(given, section.kind(name, key), key=key, origin=given.origin)
            _check_option(key, value, given.origin)
            yield Change(section, (name,), key, value, given.origin)


def _plan_new(section: CfgNode, path: tuple[str, ...], key: str, given: Given) -> Iterator[Change]:
    """Keys that a section with ``new_allowed`` takes in."""
    if isinstance(given.value, dict):
        for name, inner in given.value.items():
            yield from _plan_new(section, (*path, name), f"{key}.{name}", inner)
    else:
        yield Change(section, path, key, coerce(given, _ANY, key=key, origin=given.origin), given.origin)


def _ignored(root: CfgNode, key: str, given: Given) -> bool:
    """Whether an unknown key is a deprecated one, to be skipped; any other is an error."""
    name, value = key, given.value
    while isinstance(value, dict) and len(value) == 1:  # one key below an unknown section: name it in full
        below, inner = next(iter(value.items()))
        name, value = f"{name}.{below}", inner.value
    if root.key_is_deprecated(name):  # and yacs has warned
        return True
    if root.key_is_renamed(name):
        try:
            root.raise_key_rename_error(name)
        except KeyError as error:
            raise ConfigKeyError(f"{error.args[0]} ({given.origin})") from None
    if name.rpartition(".")[2] == BASE_KEY:
        raise ConfigKeyError(f"{BASE_KEY} stands at the top of a config file and nowhere else ({given.origin})")
    known = root.key_names()
    if key in known:
        section, _, leaf = key.rpartition(".")
        raise ConfigKeyError(f"in a file {key} is written as {leaf} below the section {section} ({given.origin})")
    raise ConfigKeyError(f"unknown key {name} ({given.origin}){did_you_mean(name, [*known, *root.section_names()])}")


def _check_option(key: str, value: Any, origin: Origin) -> None:
    allowed = OPTIONS.get(key)
    if allowed is not None and value not in allowed:
        raise ConfigValueError(f"{key} is {value!r} ({origin}); allowed: {', '.join(allowed)}")


def _twin_changes(changes: list[Change]) -> list[Change]:
    """For each pair of twins that this source gives one of: the other becomes None.

    Raises:
        ConfigValueError: the source gives both, or takes the only one away.
    """
    last = {change.key: change for change in changes}
    extra = []
    for pair in TWINS:
        given = [last[key] for key in pair if key in last and last[key].value is not None]
        if len(given) == 2:
            both = " and ".join(f"{change.key} ({change.origin})" for change in given)
            raise ConfigValueError(f"{both} say the same thing twice: give one of them")
        for key, other in (pair, pair[::-1]):
            change, leaf = last.get(key), other.rpartition(".")[2]
            if change is None or leaf not in change.section:
                continue
            if change.value is not None:
                extra.append(Change(change.section, (leaf,), other, None, change.origin))
            elif not given and change.section[change.path[-1]] is not None:
                raise ConfigValueError(f"{key} cannot be None ({change.origin}): give {other} instead")
    return extra
