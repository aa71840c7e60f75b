#!/usr/bin/env python3
"""Which datasets there are, where each is looked for, and whether it is there.

    python tools/list_datasets.py
    python tools/list_datasets.py --config-file configs/Market1501/bagtricks_R50.yml DATASETS.ROOT ~/data

Takes a config file and options as ``train_net.py`` does: KEY VALUE or KEY=VALUE, any number of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fastreid_lite.config import ConfigValueError, load_config  # noqa: E402
from fastreid_lite.config.cli import config_error_exit, parse_args  # noqa: E402
from fastreid_lite.data.datasets import DATASET_REGISTRY, datasets_root, needs_path, open_dataset  # noqa: E402


def describe(cfg: Any) -> list[tuple[str, str, str]]:
    """Name, folder, and "yes" or what is missing: of each registered dataset, then of those with a path that
    DATASETS.NAMES and DATASETS.TESTS name."""
    named = [name for name in (*cfg.DATASETS.NAMES, *cfg.DATASETS.TESTS) if ":" in name]
    rows = []
    for name in [*DATASET_REGISTRY.names(), *dict.fromkeys(named)]:
        if name in DATASET_REGISTRY and needs_path(name):
            rows.append((f"{name}:PATH", str(datasets_root(cfg.DATASETS.ROOT) / "PATH"), "give a PATH"))
            continue
        folder = ""
        try:
            dataset = open_dataset(cfg, name)
            folder = str(dataset.folder)
            rows.append((name, folder, _presence(dataset)))
        except (KeyError, TypeError, ValueError, OSError) as error:
            rows.append((name, folder, f"no: {error.args[0] if isinstance(error, KeyError) else error}"))
    return rows


def _presence(dataset: Any) -> str:
    if hasattr(dataset, "missing"):
        missing = dataset.missing()
    else:
        missing = None if Path(dataset.folder).exists() else f"{str(dataset.folder)!r} does not exist"
    return "yes" if missing is None else f"no: {missing}"


def _read_config(words: Sequence[str]) -> Any:
    """The config that the command line means; flags of a training run are refused."""
    args = vars(parse_args(words))
    others = [name for name, value in vars(parse_args([])).items() if args[name] != value]
    flags = [f"--{name.replace('_', '-')}" for name in others if name not in ("config_file", "opts")]
    if flags:
        raise ConfigValueError(f"{flags[0]} is a flag of a training run: give --config-file and options alone")
    return load_config(args["config_file"], args["opts"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "-h" in words or "--help" in words:
        print(f"usage: list_datasets.py [--config-file FILE] [KEY VALUE | KEY=VALUE ...]\n\n{__doc__}", end="")
        return 0
    with config_error_exit("list_datasets.py"):
        cfg = _read_config(words)
    rows = [("name", "folder", "there"), *describe(cfg)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, folder, there in rows:
        print(f"{name:<{widths[0]}}  {folder:<{widths[1]}}  {there}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
