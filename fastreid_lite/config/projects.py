"""Packages outside this one that a config names: PROJECT.IMPORTS."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from .errors import ConfigValueError, Origin
from .node import CfgNode

_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PROJECT_TOPS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


def import_projects(
    names: Sequence[str],
    *,
    cfg: CfgNode | None = None,
    folders: Sequence[Path] = (),
    origin: Origin = Origin("PROJECT.IMPORTS"),  # noqa: B008 (frozen)
) -> list[ModuleType]:
    """Import each package and call its ``add_config(cfg)`` where it has one.

    Args:
        names: packages or modules, dotted names.
        cfg: the config that they add keys to; None only imports (so that their registrations count), as in a new
            process that gets a finished config.
        folders: where to look for a package that Python does not find. The first that holds it goes to the end of
            ``sys.path``, so it hides nothing and processes that are started later find the package too.
        origin: where the names were written, for messages.

    Raises:
        ConfigValueError: a package that cannot be imported, or whose ``add_config`` fails.
    """
    modules = []
    for name in dict.fromkeys(names):
        if not _PACKAGE.fullmatch(name):
            raise ConfigValueError(f"PROJECT.IMPORTS takes names of packages such as my_paper, not {name!r} ({origin})")
        module = _import(name, folders, origin)
        add_config = getattr(module, "add_config", None)
        if add_config is not None and cfg is not None:
            try:
                add_config(cfg)
            except Exception as error:
                reason = _reason(error)
                raise ConfigValueError(
                    f"PROJECT.IMPORTS: add_config of {name!r} failed ({origin}): {reason}"
                ) from error
        modules.append(module)
    return modules


def project_folders(config_file: Path) -> list[Path]:
    """The folder of ``config_file`` and those above it, up to the top of its project.

    The top is the first folder with ``.git`` or a file that describes a package, or else the fourth.
    """
    folders = []
    for folder in list(config_file.resolve().parents)[:4]:
        folders.append(folder)
        if any((folder / name).exists() for name in _PROJECT_TOPS):
            break
    return folders


def _import(name: str, folders: Sequence[Path], origin: Origin) -> ModuleType:
    top = name.partition(".")[0]
    if top not in sys.modules and not _found_by_python(top):
        for folder in folders:
            if (folder / top / "__init__.py").is_file() or (folder / f"{top}.py").is_file():
                sys.path.append(str(folder.resolve()))
                importlib.invalidate_caches()
                break
    try:
        module = importlib.import_module(name)
    except Exception as error:
        looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
        missing = (
            isinstance(error, ModuleNotFoundError)
            and error.name is not None
            and (name + ".").startswith(error.name + ".")
        )
        hint = f"; it is neither on PYTHONPATH nor in {looked}" if missing and looked else ""
        raise ConfigValueError(f"PROJECT.IMPORTS: cannot import {name!r} ({origin}): {_reason(error)}{hint}") from error
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        raise ConfigValueError(
            f"PROJECT.IMPORTS: {name!r} ({origin}) is a folder without __init__.py: {list(module.__path__)[0]}"
        )
    return module


def _found_by_python(top: str) -> bool:
    """Whether a package (not only a folder of that name) is on ``sys.path``."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None


def _reason(error: BaseException) -> str:
    """The error in one line, and the line of the package that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename[:1] != "<"]
    inside = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    inside = [frame for frame in inside if "site-packages" not in frame.filename] or inside
    where = f" ({inside[-1].filename}, line {inside[-1].lineno})" if inside else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"
