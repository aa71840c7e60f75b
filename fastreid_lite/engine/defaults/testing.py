"""Evaluation on the datasets that a config names."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from fastreid_lite.data.build import build_test_loader
from fastreid_lite.engine.evaluator import inference_on_dataset
from fastreid_lite.evaluation import ReidEvaluator
from fastreid_lite.runtime import Runtime
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)

#: what is evaluated: the loader over query and gallery, and what makes numbers of the features, by name
TestSets = dict[str, tuple[Any, Any]]


def validation_name(cfg: Any) -> str | None:
    """Under which name the held-out identities of the first of DATASETS.NAMES are evaluated; None without any."""
    return f"{cfg.DATASETS.NAMES[0]}-val" if cfg.DATASETS.VAL_FRACTION else None


def best_key(cfg: Any) -> str:
    """The published number by which the best model is chosen."""
    return f"{validation_name(cfg) or cfg.DATASETS.TESTS[0]}/metric"


def build_test_sets(cfg: Any, runtime: Runtime) -> TestSets:
    """Everything to evaluate: the held-out identities, where there are any, and each of DATASETS.TESTS."""
    wanted = [(name, name, False) for name in cfg.DATASETS.TESTS]
    held_out = validation_name(cfg)
    if held_out is not None:
        wanted.insert(0, (held_out, cfg.DATASETS.NAMES[0], True))
    sets: TestSets = {}
    for shown, name, validation in wanted:
        loader, query, gallery = build_test_loader(
            cfg,
            name,
            validation=validation,
            rank=comm.get_rank(),
            world_size=comm.get_world_size(),
            pin_memory=runtime.pins,
        )
        for note in loader.notes:
            logger.info(note)
        sets[shown] = (loader, ReidEvaluator.from_config(cfg, query, gallery))
    return sets


def evaluate_all(model: nn.Module, sets: TestSets, runtime: Runtime) -> dict[str, dict[str, float]]:
    """The numbers of each set, percent, the same on every process."""
    return {
        name: dict(inference_on_dataset(model, loader, evaluator, runtime=runtime))
        for name, (loader, evaluator) in sets.items()
    }
