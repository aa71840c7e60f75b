"""The learning curve as a picture: the loss and, beside it, how the evaluation went."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

#: Above this many points a loss is drawn as means over equal stretches.
_MOST_POINTS = 400

_METRICS = {"mAP": "-", "Rank-1": "--"}

#: Colours that stay apart for the colour-blind (Okabe and Ito 2008), in order of dataset.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

Points = tuple[list[float], list[float]]


def plot_learning_curve(metrics_json_path: str | os.PathLike[str], png_path: str | os.PathLike[str]) -> bool:
    """Draw the losses and, where there are any, ``<dataset>/mAP`` and ``<dataset>/Rank-1`` over the steps.

    Args:
        metrics_json_path: a log of JSON lines, each with ``"iteration"`` and numbers by name. Lines that are cut off,
            as by a run that died in writing, are left out; so are values that are not finite.
        png_path: the picture to write.

    Returns:
        True where the picture was written; False, with a line in the log, where matplotlib is not installed or the log
        holds no losses and no results yet.

    Raises:
        FileNotFoundError: there is no log.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        logger.info("no learning curve was drawn: matplotlib is not installed (pip install 'fastreid_lite[plot]')")
        return False
    series = _read(Path(metrics_json_path))
    losses = {name: points for name, points in series.items() if name.startswith(("total_loss", "loss"))}
    scores = {name: points for name, points in series.items() if name.rsplit("/", 1)[-1] in _METRICS and "/" in name}
    panels = [draw for draw, found in ((_draw_losses, losses), (_draw_scores, scores)) if found]
    if not panels:
        logger.info("no learning curve was drawn: %s holds neither losses nor results yet", metrics_json_path)
        return False
    # A figure of its own: pyplot would keep it in a global list and pick a backend for the whole process.
    figure = Figure(figsize=(6.4 * len(panels), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for number, draw in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), number + 1)
        draw(axes, losses if draw is _draw_losses else scores)
        axes.set_xlabel("iteration")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(os.fspath(png_path), dpi=120, format="png")
    return True


def _read(path: Path) -> dict[str, Points]:
    """Name to iterations and values, in the order of the file; of a repeated iteration the last value stays."""
    found: dict[str, dict[float, float]] = {}
    for record in _records(path):
        step = record.get("iteration")
        if not isinstance(step, (int, float)):
            continue
        for name, value in record.items():
            if name != "iteration" and isinstance(value, (int, float)) and math.isfinite(value):
                found.setdefault(name, {})[float(step)] = float(value)
    return {name: ([*sorted(values)], [values[step] for step in sorted(values)]) for name, values in found.items()}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict):
                yield record


def _thinned(points: Points) -> Points:
    """Means over equal stretches, at most :data:`_MOST_POINTS` of them."""
    stretch = -(-len(points[0]) // _MOST_POINTS)
    parts = range(0, len(points[0]), stretch)
    steps, values = ([_mean(line[part : part + stretch]) for part in parts] for line in points)
    return steps, values


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _draw_losses(axes: Any, losses: dict[str, Points]) -> None:
    # One loss alone is its own total: a second line on top of it would only hide it.
    if len(losses) == 2 and "total_loss" in losses:
        losses = {"total_loss": losses["total_loss"]}
    for number, (name, points) in enumerate(sorted(losses.items(), key=lambda item: item[0] != "total_loss")):
        style = {"color": "#222222", "linewidth": 1.8} if name == "total_loss" else _line(number - 1)
        marker = "o" if len(points[0]) == 1 else None  # a line through one point would not be seen
        axes.plot(*_thinned(points), label=name, marker=marker, **style)
    axes.set_title("Training loss")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.legend(frameon=False)


def _draw_scores(axes: Any, scores: dict[str, Points]) -> None:
    datasets = sorted({name.rsplit("/", 1)[0] for name in scores})
    for number, dataset in enumerate(datasets):
        for metric, dashes in _METRICS.items():
            if f"{dataset}/{metric}" in scores:
                steps, values = scores[f"{dataset}/{metric}"]
                label = f"{dataset} {metric} (last {values[-1]:.1f})"
                axes.plot(steps, values, dashes, marker="o", markersize=4, label=label, **_line(number))
    axes.set_title("Evaluation")
    axes.set_ylabel("%")
    axes.set_ylim(0.0, 102.0)
    axes.legend(frameon=False, loc="lower right")


def _line(number: int) -> dict[str, Any]:
    return {"color": _COLOURS[number % len(_COLOURS)], "linewidth": 1.3}
