"""From a file and options to the config of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .base_files import Document, load_chain
from .defaults import get_cfg
from .errors import COMMAND_LINE
from .merge import merge_tree
from .node import CfgNode
from .options import split_options
from .projects import import_projects, project_folders
from .schema import KINDS
from .values import coerce
from .written import Given, Scalar

_IMPORTS = "PROJECT.IMPORTS"


def load_config(
    config_file: str | os.PathLike[str] | None,
    opts: Sequence[str] = (),
    *,
    search_path: Sequence[str | os.PathLike[str]] = (),
) -> CfgNode:
    """The defaults, the keys of the projects, the file with its bases, and the options, merged in this order.

    The packages in PROJECT.IMPORTS, wherever it stands, are imported first (:func:`import_projects`): from where Python
    finds them, else from a folder that holds them: one of ``search_path``, the current one, or one in which the config
    file (or the base that names them) lies, up to the top of its project.

    Args:
        config_file: a YAML file; None takes the defaults.
        opts: KEY VALUE and KEY=VALUE, mixed, as on a command line.
        search_path: further folders in which packages of PROJECT.IMPORTS lie.

    Returns:
        a config that is not frozen.

    Raises:
        ConfigError: anything that is wrong with file, options or packages, in one sentence.
    """
    cfg = get_cfg()
    documents = [] if config_file is None else load_chain(config_file)
    given, files = _imports(documents, split_options(opts, known=cfg.key_names()))
    if given is not None:
        names = coerce(given, KINDS[_IMPORTS], key=_IMPORTS, origin=given.origin)
        folders = [Path(folder) for folder in search_path] + [Path.cwd()]
        for file in [*files, *(document.path for document in reversed(documents))]:
            folders.extend(project_folders(file))
        import_projects(names, cfg=cfg, folders=folders, origin=given.origin)
    for document in documents:
        merge_tree(cfg, document.tree)
    cfg.merge_from_list(opts)
    return cfg


def _imports(documents: list[Document], pairs: list[tuple[str, str]]) -> tuple[Given | None, list[Path]]:
    """PROJECT.IMPORTS as the last one to give it does, None where nobody does; and the file it stands in."""
    for key, value in reversed(pairs):
        if key == _IMPORTS:
            return Given(Scalar(value, quoted=not value), COMMAND_LINE), []
    for document in reversed(documents):
        project = document.tree.get("PROJECT")
        if project is not None and isinstance(project.value, dict) and "IMPORTS" in project.value:
            given = project.value["IMPORTS"]
            return given, [document.path]
    return None, []
