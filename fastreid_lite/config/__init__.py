"""Configuration: every key with its default, YAML files that build on each other, and the command line. Free of torch.

    cfg = load_config("configs/Market1501/bagtricks_R50.yml", ["SOLVER.BASE_LR", "1e-4"])

The names below come with their module when they are first used, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

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
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
