"""Configuration: every key with its default, YAML files that build on each other, and the command line. Free of torch.

    cfg = load_config("configs/Market1501/bagtricks_R50.yml", ["SOLVER.BASE_LR", "1e-4"])

The names below come with their module when they are first used, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cli import build_parser, check_weights, config_error_exit, parse_args
    from .defaults import get_cfg
    from .errors import ConfigError, ConfigKeyError, ConfigTypeError, ConfigValueError
    from .load import load_config
    from .node import CfgNode
    from .projects import import_projects

_SUBMODULES = {
    "CfgNode": "node",
    "ConfigError": "errors",
    "ConfigKeyError": "errors",
    "ConfigTypeError": "errors",
    "ConfigValueError": "errors",
    "build_parser": "cli",
    "check_weights": "cli",
    "config_error_exit": "cli",
    "get_cfg": "defaults",
    "import_projects": "projects",
    "load_config": "load",
    "parse_args": "cli",
}

__all__ = [
    "CfgNode",
    "ConfigError",
    "ConfigKeyError",
    "ConfigTypeError",
    "ConfigValueError",
    "build_parser",
    "check_weights",
    "config_error_exit",
    "get_cfg",
    "import_projects",
    "load_config",
    "parse_args",
]


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_SUBMODULES[name]}", __name__), name)
