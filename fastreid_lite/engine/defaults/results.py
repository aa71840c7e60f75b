"""What a finished run leaves: a table, ``results.json``, a learning curve, and one line that says where."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint.files import atomic_write_text
from fastreid_lite.evaluation import plot_learning_curve, results_table

logger = logging.getLogger(__name__)

CURVE_NAME = "learning_curve.png"


def write_results(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` as strict JSON, whole or not at all; numbers that are not finite are null."""
    text = json.dumps(_strict(content), indent=2, allow_nan=False, ensure_ascii=False)
    atomic_write_text(path, text + "\n")


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def notes_on(skipped: int, chosen_on_test: str | None) -> list[str]:
    """What a reader of the table must know.

    Args:
        skipped: broken image files that were replaced by others.
        chosen_on_test: the number of the test set by which the best model was chosen; None where it was not.
    """
    notes = []
    if skipped:
        notes.append(
            f"{skipped} broken images were replaced by others (DATALOADER.ON_BROKEN_IMAGE); log.txt names them"
        )
    if chosen_on_test is not None:
        notes.append(
            f"model_best.pth was chosen on the test set ({chosen_on_test}); DATASETS.VAL_FRACTION holds identities out "
            f"to choose it on"
        )
    return notes


def say_results(results: Mapping[str, Mapping[str, float]], notes: list[str]) -> None:
    """The table, to terminal and log."""
    if results:
        logger.info(f"results, in percent:\n{results_table(results, notes)}")


def say_where(folder: Path, checkpoint: str | None, *, best: bool) -> None:
    """Draw the learning curve, and say in one line where everything is."""
    curve = folder / CURVE_NAME
    drawn = False
    if (folder / "metrics.json").exists():
        drawn = plot_learning_curve(folder / "metrics.json", curve)
    final = folder / checkpoint if checkpoint else "none were asked for (SOLVER.CHECKPOINT_PERIOD)"
    weights = f"{final}{' (best: model_best.pth)' if best else ''}"
    logger.info(
        f"weights: {weights}; log: {folder / 'log.txt'}; numbers: {folder / 'metrics.json'}"
        + (f"; curve: {curve}" if drawn else "")
    )


def with_nan(values: Mapping[str, float | None]) -> dict[str, float]:
    """Numbers as read from ``results.json``, null back as NaN."""
    return {name: math.nan if value is None else value for name, value in values.items()}
