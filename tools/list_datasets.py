"""Which datasets there are, where each is looked for, and whether it is there.

python tools/list_datasets.py
python tools/list_datasets.py --config-file configs/Market1501/bagtricks_R50.yml DATASETS.ROOT ~/data
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fastreid_lite.config import ConfigError, load_config
from fastreid_lite.data.datasets import DATASET_REGISTRY, datasets_root, needs_path, open_dataset


def describe(cfg: Any) -> list[tuple[str, str, str]]:
    """Name, folder, and "yes" or what is missing: of each registered dataset, then of those with a path that
    DATASETS.NAMES and DATASETS.TESTS name."""
    named = [name for name in (*cfg.DATASETS.NAMES, *cfg.DATASETS.TESTS) if ":" in name]
    rows = []
    for name in [*DATASET_REGISTRY.names(), *dict.fromkeys(named)]:
        if name in DATASET_REGISTRY and needs_path(name):
            rows.append((f"{name}:PATH", str(datasets_root(cfg.DATASETS.ROOT) / "PATH"), "give a PATH"))
            continue
        try:
            dataset = open_dataset(cfg, name)
            rows.append((name, str(dataset.folder), _presence(dataset)))
        except (KeyError, TypeError, ValueError) as error:
            rows.append((name, "", f"no: {error.args[0]}"))
    return rows


def _presence(dataset: Any) -> str:
    if hasattr(dataset, "missing"):
        missing = dataset.missing()
    else:
        missing = None if Path(dataset.folder).exists() else f"{str(dataset.folder)!r} does not exist"
    return "yes" if missing is None else f"no: {missing}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--config-file", default=None, metavar="F", help="YAML file with the keys of a run")
    parser.add_argument("opts", nargs="*", metavar="KEY VALUE", help="keys that override the file")
    options = parser.parse_intermixed_args(arguments)
    try:
        cfg = load_config(options.config_file, options.opts)
    except ConfigError as error:
        parser.error(str(error.args[0]) if error.args else str(error))
    rows = [("name", "folder", "there"), *describe(cfg)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, folder, there in rows:
        print(f"{name:<{widths[0]}}  {folder:<{widths[1]}}  {there}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
