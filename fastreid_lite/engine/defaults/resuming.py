"""Which state a run begins from, and what is said of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from torch import nn

from fastreid_lite.checkpoint import Checkpointer, CheckpointError, ResumeChoice, load_checkpoint, load_weights
from fastreid_lite.utils import comm
from fastreid_lite.utils.nesting import flatten

logger = logging.getLogger(__name__)

RESULTS_NAME = "results.json"
# Where a run stands and how it is started may differ between its parts without a word.
_SILENT = (
    "OUTPUT_DIR",
    "SEED",
    "DATALOADER.NUM_WORKERS",
    "DATALOADER.PREFETCH_FACTOR",
    "MODEL.DEVICE",
    "MODEL.WEIGHTS",
    "MODEL.BACKBONE.PRETRAIN",
)


def choose_state(checkpointer: Checkpointer, resume: bool | str) -> ResumeChoice | None:
    """The checkpoint that ``resume`` means, the same on every process; None where none was ever published.

    Raises:
        CheckpointError: there is one and it cannot be used; on every process.
    """

    def find() -> ResumeChoice | None:
        return checkpointer.resume_from(resume) if isinstance(resume, str) else checkpointer.find_resume()

    choice, error = None, None
    if comm.is_main_process():
        try:
            choice = find()
        except CheckpointError as caught:
            error = str(caught)
    path, error = comm.broadcast_object((None if choice is None else choice.path, error))
    if error is not None:
        raise CheckpointError(error)
    if path is None or choice is not None:
        return choice
    return checkpointer.resume_from(path)


def refuse_foreign(choice: ResumeChoice) -> None:
    """Refuse a file that says of which iteration it is, but was not written by a trainer of this kind.

    Raises:
        CheckpointError: naming what it lacks.
    """
    missing = sorted({"trainer", "model", "optimizer"} - choice.state.keys())
    if missing:
        raise CheckpointError(
            f"{choice.path} is no checkpoint of a run of this trainer: it has no {', '.join(missing)}. To begin a new "
            f"run from its weights, set MODEL.WEIGHTS to it"
        )


def load_initial_weights(model: nn.Module, path: str, *, evaluating: bool) -> None:
    """MODEL.WEIGHTS into ``model``. A missing backbone tensor is an error where ``evaluating``, else a warning.

    Raises:
        CheckpointError: the file cannot be used.
    """
    report = load_weights(model, load_checkpoint(Path(path).expanduser()), strict_backbone=evaluating, source=path)
    logger.info(f"weights from {path}: {len(report.loaded)} tensors")


def finished_results(folder: Path, choice: ResumeChoice, max_iter: int) -> dict[str, Any] | None:
    """``results.json`` where it says that the run of ``choice`` has completed its ending at ``max_iter``, else None."""
    try:
        found = json.loads((folder / RESULTS_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    matches = (
        choice.path.resolve().parent == folder.resolve()
        and isinstance(found, dict)
        and found.get("outcome") == "finished"
        and found.get("iteration") == choice.iteration
        and found.get("checkpoint") == choice.path.name
        and found.get("max_iter") == max_iter
    )
    return found if matches else None


def report_changes(saved: str | None, cfg: Any, say: Callable[[str], None] = logger.warning) -> None:
    """One line for each key that is not what it was when the checkpoint was written; the new value is in force."""
    if saved is None:
        return
    before, now = flatten(yaml.safe_load(saved), "."), flatten(yaml.safe_load(cfg.dump()), ".")
    for key in sorted(before.keys() | now.keys()):
        if key not in _SILENT and before.get(key) != now.get(key):
            say(f"{key} was {before.get(key)!r} in the checkpoint and is {now.get(key)!r} now, which is in force")
