"""Evaluation of weights, without training."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint import Checkpointer, CheckpointError, load_weights
from fastreid_lite.engine.defaults.from_config import without_pretrained
from fastreid_lite.engine.defaults.results import say_results, write_results
from fastreid_lite.engine.defaults.resuming import choose_state, load_initial_weights
from fastreid_lite.engine.defaults.testing import evaluate_all
from fastreid_lite.engine.defaults.trainer import DefaultTrainer
from fastreid_lite.modeling import build_model
from fastreid_lite.runtime import get_runtime
from fastreid_lite.storage import EventStorage
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)

EVALUATION_NAME = "evaluation.json"


def evaluate_weights(cfg: Any, *, resume: bool | str) -> dict[str, dict[str, float]]:
    """Evaluate MODEL.WEIGHTS, or with ``resume`` the checkpoint that it means, on everything that ``cfg`` names.

    The table goes to terminal and log, the numbers to ``evaluation.json`` in OUTPUT_DIR.

    Raises:
        CheckpointError: there is no checkpoint, or it lacks a tensor of the backbone.
    """
    runtime = get_runtime(cfg.MODEL.DEVICE)
    runtime.prepare()
    model = build_model(without_pretrained(cfg))
    if resume:
        choice = choose_state(Checkpointer(cfg.OUTPUT_DIR), resume)
        if choice is None:
            raise CheckpointError(f"--eval-only --resume: no checkpoint was ever published in {cfg.OUTPUT_DIR}")
        source = str(choice.path)
        load_weights(model, choice.state, strict_backbone=True, source=source)
        logger.info(f"weights from {source}, after {choice.iteration + 1} iterations")
    else:
        source = cfg.MODEL.WEIGHTS
        load_initial_weights(model, source, evaluating=True)
    model = runtime.move_module(model)
    with EventStorage(0):  # a model may put numbers from its forward
        results = evaluate_all(model, DefaultTrainer.build_test_sets(cfg), runtime)
    say_results(results, [])
    if comm.is_main_process():
        path = Path(cfg.OUTPUT_DIR).expanduser() / EVALUATION_NAME
        write_results(path, {"weights": source, "results": results})
        logger.info(f"numbers: {path}")
    return results
