"""From a name in the config to a dataset."""

from __future__ import annotations

import dataclasses
import inspect
import os
from pathlib import Path
from typing import Any

from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.samples import ReIDData

ROOT_VARIABLE = "FASTREID_LITE_DATASETS"
"""The environment variable that names the datasets' folder where the config does not."""


def datasets_root(configured: str = "") -> Path:
    """The folder under which datasets lie: ``configured`` (DATASETS.ROOT), else $FASTREID_LITE_DATASETS, else
    "datasets" in the working folder."""
    return Path(configured or os.environ.get(ROOT_VARIABLE, "") or "datasets").expanduser()


def open_dataset(cfg: Any, name: str) -> Any:
    """The dataset object that ``name`` stands for; nothing is read from disk yet.

    Args:
        cfg: the config; DATASETS.ROOT and whatever the dataset's own ``from_config`` reads.
        name: "Name" or "Name:PATH".

    Raises:
        KeyError: no dataset of that name.
        ValueError: a path is missing, or given to a dataset that takes none.
    """
    kind, colon, path = name.partition(":")
    cls = DATASET_REGISTRY.get(kind)
    arguments = dict(cls.from_config(cfg)) if hasattr(cls, "from_config") else {}
    takes = "path" in inspect.signature(cls).parameters
    if colon and not takes:
        raise ValueError(
            f"dataset {name!r} ({DATASET_REGISTRY.config_key}) has a path, but {kind} takes none: write {kind!r}; the "
            "folder under which it lies is set by DATASETS.ROOT"
        )
    if not path and needs_path(kind):
        raise ValueError(
            f"dataset {name!r} ({DATASET_REGISTRY.config_key}) needs a path: write '{kind}:PATH', PATH absolute or "
            "under the datasets folder (DATASETS.ROOT)"
        )
    if path:
        arguments["path"] = path
    return cls(datasets_root(cfg.DATASETS.ROOT), **arguments)


def needs_path(kind: str) -> bool:
    """Whether the dataset registered as ``kind`` cannot do without the path of "Name:PATH".

    Raises:
        KeyError: no dataset of that name.
    """
    parameter = inspect.signature(DATASET_REGISTRY.get(kind)).parameters.get("path")
    return parameter is not None and parameter.default is inspect.Parameter.empty


def build_dataset(cfg: Any, name: str) -> ReIDData:
    """Read the dataset ``name`` ("Name" or "Name:PATH"); its data carries that name.

    Raises:
        KeyError, ValueError: see :func:`open_dataset`.
        ValueError: the dataset is not there, cannot be read, or is not as it should be.
    """
    dataset = open_dataset(cfg, name)
    try:
        data: ReIDData = dataset.load()
    except OSError as error:
        where = error.filename or dataset.folder
        raise ValueError(
            f"dataset {name!r}: {str(where)!r} cannot be read ({error.strerror or error}); see to its permissions, or "
            f"set DATASETS.ROOT to a folder that can be read"
        ) from error
    return dataclasses.replace(data, name=name)


def dataset_folder(cfg: Any, name: str) -> str:
    """Where the dataset ``name`` is looked for; it need not be there."""
    return str(open_dataset(cfg, name).folder)
