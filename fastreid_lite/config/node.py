"""The config node: fvcore's class, with loading, merging and coercion of our own.

Those of fvcore and yacs take duplicate keys, merge into frozen configs, loop on circular bases and refuse ``1`` for a
float; what stays of them is the tree with attribute access, freezing, and the registers of deprecated and renamed keys.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import yaml
from fvcore.common.config import CfgNode as _CfgNode

from .base_files import load_chain
from .errors import COMMAND_LINE, ConfigTypeError, ConfigValueError, Origin
from .kinds import Kind, kind_of
from .merge import Change, merge_tree, plan, store_changes
from .options import split_options
from .schema import KINDS, TWIN_NAMES
from .values import guess
from .written import Given, Scalar, escape_variables, is_null

_KINDS_ATTRIBUTE = "__kinds__"
_COMPUTED = "COMPUTED_"


class CfgNode(_CfgNode):
    """A section of a config, or the whole; keys are attributes (``cfg.SOLVER.BASE_LR``).

    Merging never changes the type of a key: an int is taken for a float and a tuple or list becomes what the default
    is, anything else is refused (:mod:`.values`). ``${NAME}`` in a text is the environment variable NAME, which must be
    set. Every refusal is a :class:`ConfigError` and names key, value, file and line: ``ConfigKeyError`` for unknown
    keys, ``ConfigTypeError`` for wrong types and frozen configs, ``ConfigValueError`` for the rest. A source (one file,
    one command line, one node) that is refused changes nothing. A section with ``new_allowed`` takes unknown keys from
    every source.
    """

    def merge_from_file(self, path: str | os.PathLike[str]) -> None:
        """Merge the YAML file at ``path``, after the base files that its ``_BASE_`` names (:mod:`.base_files`)."""
        self._refuse_frozen(str(path))
        for document in load_chain(path):
            merge_tree(self, document.tree)

    def merge_from_list(self, options: Sequence[Any]) -> None:
        """Merge ``["A.B", "1", "C.D=2", ...]``, as on a command line; of a key given twice the last counts.

        Texts are read as in a YAML file. Other Python values are taken as they are.
        """
        self._refuse_frozen("the command line")
        changes: list[Change] = []
        for key, value in split_options(options, known=self.key_names()):
            if isinstance(value, str):
                value = Scalar(value, quoted=not value)  # '' on a command line is an empty text, not nothing
            given = Given(value, COMMAND_LINE)
            for name in reversed(key.split(".")[1:]):
                given = Given({name: given}, COMMAND_LINE)
            changes.extend(plan(self, {key.split(".")[0]: given}))
        store_changes(changes)

    def merge_from_other_cfg(self, other: dict[str, Any]) -> None:
        """Merge another node, or a plain dict of dicts."""
        self._refuse_frozen("another config")
        merge_tree(self, _given_tree(other, Origin("another config")))

    def kind(self, name: str, key: str) -> Kind:
        """The type of the key ``name`` of this section; ``key`` is its full name, for `schema.KINDS`."""
        return KINDS.get(key) or self._remembered_kind(name)

    def _remembered_kind(self, name: str) -> Kind:
        """The kind of the first value that ``name`` had: a later None or empty list says less."""
        kinds: dict[str, Kind] = self.__dict__.setdefault(_KINDS_ATTRIBUTE, {})
        return kinds.setdefault(name, kind_of(self[name]))

    def key_names(self, prefix: str = "") -> list[str]:
        """The full names of all keys, sections left out, in the order of the tree."""
        names: list[str] = []
        for name, value in self.items():
            names.extend(value.key_names(f"{prefix}{name}.") if isinstance(value, CfgNode) else [prefix + name])
        return names

    def section_names(self, prefix: str = "") -> list[str]:
        """The full names of all sections."""
        names: list[str] = []
        for name, value in self.items():
            if isinstance(value, CfgNode):
                names.extend([prefix + name, *value.section_names(f"{prefix}{name}.")])
        return names

    def dump(self, **options: Any) -> str:
        """The config as YAML text (UTF-8 characters as they are) that :meth:`merge_from_file` reads back unchanged."""
        settings = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None, "width": 120, **options}
        return str(yaml.dump(_plain(self), Dumper=_Dumper, **settings))

    def clone(self) -> CfgNode:
        """A copy that shares nothing; frozen where this one is."""
        return copy.deepcopy(self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a key. Giving one of two twins (`schema.TWINS`) sets the other to None, as merging does."""
        if name in self and not isinstance(self[name], CfgNode):
            self._remembered_kind(name)
        super().__setattr__(name, value)
        twin = TWIN_NAMES.get(name)
        if twin is not None and value is not None and self.get(twin) is not None:
            self._remembered_kind(twin)
            self[twin] = None

    def __setitem__(self, name: str, value: Any) -> None:
        if self.__dict__.get(_CfgNode.IMMUTABLE, False) and not name.startswith(_COMPUTED):
            raise AttributeError(f"the config is frozen: {name} cannot be set to {value!r}")
        super().__setitem__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> CfgNode:
        # The state goes in last: the default order would set items of a node that is frozen already.
        result = type(self)()
        memo[id(self)] = result
        for name, value in self.items():
            result[name] = copy.deepcopy(value, memo)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __copy__(self) -> CfgNode:
        result = type(self)()
        result.update(self)
        result.__dict__.update(self.__dict__)
        return result

    def _refuse_frozen(self, source: str) -> None:
        if self.is_frozen():
            raise ConfigTypeError(f"the config is frozen: {source} cannot be merged; call defrost() first")

    @classmethod
    def load_yaml_with_base(cls, filename: str, allow_unsafe: bool = False) -> Any:
        """Not offered: fvcore's own reader takes duplicate keys and, on request, runs code."""
        raise ConfigValueError(f"{filename}: use merge_from_file, which is the one way to read a config file")

    @classmethod
    def load_cfg(cls, cfg_file_obj_or_str: Any) -> Any:
        """Not offered: yacs's own reader runs Python files."""
        raise ConfigValueError("load_cfg is not offered: use merge_from_file, the one way to read a config file")


def _given_tree(node: dict[str, Any], origin: Origin) -> dict[str, Given]:
    return {
        str(name): Given(_given_tree(value, origin) if isinstance(value, dict) else value, origin)
        for name, value in node.items()
    }


def _plain(value: Any) -> Any:
    """``value`` as plain containers; what fvcore calls computed is not part of a config."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if not name.startswith(_COMPUTED)}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


class _Dumper(yaml.SafeDumper):
    """Writes a text that YAML or :mod:`.values` would read as something else in quotes, and lists in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = guess(Scalar(text)).name == "str" and not is_null(Scalar(text))
    return dumper.represent_scalar("tag:yaml.org,2002:str", escape_variables(text), style=None if plain else "'")


def _represent_section(dumper: yaml.SafeDumper, section: dict[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", section, flow_style=False)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_section)
