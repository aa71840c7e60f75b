"""Evaluation on the datasets that a config names."""

from __future__ import annotations

from typing import Any

from torch import nn

from fastreid_lite.config.errors import ConfigValueError
from fastreid_lite.engine.evaluator import inference_on_dataset
from fastreid_lite.runtime import Runtime

#: what is evaluated: the loader over query and gallery, and what makes numbers of the features, by name
TestSets = dict[str, tuple[Any, Any]]


def validation_name(cfg: Any) -> str | None:
    """Under which name the held-out identities of the first of DATASETS.NAMES are evaluated; None without any."""
    return f"{cfg.DATASETS.NAMES[0]}-val" if cfg.DATASETS.VAL_FRACTION else None


def best_key(cfg: Any) -> str:
    """The published number by which the best model is chosen."""
    return f"{validation_name(cfg) or cfg.DATASETS.TESTS[0]}/metric"


def wanted_sets(cfg: Any) -> list[tuple[str, str, bool]]:
    """(name in the results, name of the dataset, whether its held-out identities are meant) of all to evaluate.

    Raises:
        ConfigValueError: DATASETS.TESTS is empty, or has a name twice.
    """
    names = list(cfg.DATASETS.TESTS)
    if not names:
        raise ConfigValueError(
            "DATASETS.TESTS is empty: name a dataset to evaluate on, or set TEST.EVAL_PERIOD -1 to train without"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigValueError(f"DATASETS.TESTS has {twice[0]!r} more than once: name each dataset once")
    wanted = [(name, name, False) for name in names]
    held_out = validation_name(cfg)
    return wanted if held_out is None else [(held_out, cfg.DATASETS.NAMES[0], True), *wanted]


def evaluate_all(model: nn.Module, sets: TestSets, runtime: Runtime) -> dict[str, dict[str, float]]:
    """The numbers of each set, percent, the same on every process."""
    return {
        name: dict(inference_on_dataset(model, loader, evaluator, runtime=runtime))
        for name, (loader, evaluator) in sets.items()
    }
