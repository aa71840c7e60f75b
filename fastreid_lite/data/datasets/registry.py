"""Where a name in DATASETS.NAMES and DATASETS.TESTS is looked up.

A dataset is a class with a ``folder`` property (where it looks) and ``load() -> ReIDData``. It is made as
``cls(root, **arguments)``, where the arguments are what its classmethod ``from_config(cfg) -> dict`` gives, if it has
one, and ``path=`` what stands behind the colon of ``Name:PATH``, if its constructor takes one. Optionally ``missing()``
says in words what of it is not there, None where all is.
"""

from __future__ import annotations

from fastreid_lite.utils.registry import Registry

DATASET_REGISTRY = Registry("dataset", "DATASETS.NAMES or DATASETS.TESTS")
