"""A config as the model builders read it, and where the shared reference numbers are."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"

DEFAULTS: dict[str, Any] = {
    "INPUT.SIZE_TRAIN": [64, 32],
    "INPUT.SIZE_TEST": [64, 32],
    "INPUT.CROP.ENABLED": False,
    "INPUT.CROP.SIZE": [224, 224],
    "MODEL.META_ARCHITECTURE": "Baseline",
    "MODEL.PIXEL_MEAN": [123.675, 116.28, 103.53],
    "MODEL.PIXEL_STD": [58.395, 57.12, 57.375],
    "MODEL.BACKBONE.NAME": "build_resnet_backbone",
    "MODEL.BACKBONE.DEPTH": "18x",
    "MODEL.BACKBONE.FEAT_DIM": 2048,
    "MODEL.BACKBONE.LAST_STRIDE": 1,
    "MODEL.BACKBONE.NORM": "BN",
    "MODEL.BACKBONE.STEM_POOL": "ceil",
    "MODEL.BACKBONE.NL_CHANNELS": "one",
    "MODEL.BACKBONE.WITH_IBN": False,
    "MODEL.BACKBONE.WITH_SE": False,
    "MODEL.BACKBONE.WITH_NL": False,
    "MODEL.BACKBONE.DROP_PATH_RATIO": 0.1,
    "MODEL.BACKBONE.DROP_RATIO": 0.0,
    "MODEL.BACKBONE.ATT_DROP_RATE": 0.0,
    "MODEL.BACKBONE.PRETRAIN": False,
    "MODEL.BACKBONE.PRETRAIN_PATH": "",
    "MODEL.HEADS.NAME": "EmbeddingHead",
    "MODEL.HEADS.NORM": "BN",
    "MODEL.HEADS.NUM_CLASSES": 4,
    "MODEL.HEADS.EMBEDDING_DIM": 0,
    "MODEL.HEADS.WITH_BNNECK": True,
    "MODEL.HEADS.NECK_FEAT": "before",
    "MODEL.HEADS.POOL_LAYER": "GlobalAvgPool",
    "MODEL.HEADS.CLS_LAYER": "Linear",
    "MODEL.HEADS.SCALE": 1,
    "MODEL.HEADS.MARGIN": 0.0,
    "MODEL.LOSSES.NAME": ("CrossEntropyLoss", "TripletLoss"),
    "MODEL.LOSSES.CE.EPSILON": 0.1,
    "MODEL.LOSSES.CE.ALPHA": 0.2,
    "MODEL.LOSSES.CE.SCALE": 1.0,
    "MODEL.LOSSES.TRI.MARGIN": 0.3,
    "MODEL.LOSSES.TRI.NORM_FEAT": False,
    "MODEL.LOSSES.TRI.HARD_MINING": True,
    "MODEL.LOSSES.TRI.SCALE": 1.0,
    "MODEL.LOSSES.CIRCLE.MARGIN": 0.25,
    "MODEL.LOSSES.CIRCLE.GAMMA": 128,
    "MODEL.LOSSES.CIRCLE.SCALE": 1.0,
    "MODEL.LOSSES.COSFACE.MARGIN": 0.25,
    "MODEL.LOSSES.COSFACE.GAMMA": 128,
    "MODEL.LOSSES.COSFACE.SCALE": 1.0,
}


@pytest.fixture
def make_cfg() -> Callable[..., Any]:
    """``make_cfg({"MODEL.BACKBONE.DEPTH": "50x"})``: the defaults above with these changes."""

    def make(changes: dict[str, Any] | None = None) -> SimpleNamespace:
        root = SimpleNamespace()
        for key, value in {**DEFAULTS, **(changes or {})}.items():
            *sections, leaf = key.split(".")
            node = root
            for section in sections:
                if not hasattr(node, section):
                    setattr(node, section, SimpleNamespace())
                node = getattr(node, section)
            setattr(node, leaf, value)
        return root

    return make


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder with reference numbers of fast-reid."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip(f"the reference numbers are not here: {folder}")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with small real data and weights."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data and weights are not here: {folder}")
    return folder


@pytest.fixture(scope="session")
def fill(golden: Path) -> ModuleType:
    """The rule by which reference weights and images are made."""
    spec = importlib.util.spec_from_file_location("golden_fill", golden / "fill.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
