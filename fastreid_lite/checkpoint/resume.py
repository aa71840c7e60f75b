"""Which file a run goes on from."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint.errors import CheckpointError
from fastreid_lite.checkpoint.loading import load_checkpoint
from fastreid_lite.checkpoint.names import BEST_NAME, POINTER_NAME, SUFFIX

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResumeChoice:
    """A checkpoint to go on from.

    Attributes:
        path: the file.
        state: what it holds.
        iteration: the step that it was written after, from 0; the run goes on with the next.
        warning: what was wrong with the file that should have been taken; None where nothing was.
    """

    path: Path
    state: dict[str, Any]
    iteration: int
    warning: str | None = None


def read_pointer(folder: Path) -> str | None:
    """The text of the pointer file, None where there is none."""
    try:
        return (folder / POINTER_NAME).read_bytes().decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None


def choose_file(path: Path) -> ResumeChoice:
    """Exactly ``path``, without falling back.

    Raises:
        CheckpointError: it cannot be read, or is no checkpoint of a run.
    """
    state = load_checkpoint(path)
    iteration = state.get("iteration")
    if type(iteration) is not int or iteration < 0:
        raise CheckpointError(
            f"{path} says of no iteration that it was written after, so a run cannot go on from it; it has the entries "
            f"{sorted(map(str, state))[:10]}. To start a new run from its weights, set MODEL.WEIGHTS to it"
        )
    return ResumeChoice(path, state, iteration)


def find_resume(folder: Path) -> ResumeChoice | None:
    """The checkpoint that the run in ``folder`` goes on from.

    It is the one that the pointer file names; where that is missing or bad, the one with the highest iteration among
    the good ones in the folder, with a warning. None where no checkpoint was ever published there: no pointer file, and
    no checkpoint, good or damaged.

    Raises:
        CheckpointError: checkpoints were published, and none is good; the message names each and what is wrong.
    """
    pointed_at = read_pointer(folder)
    problems: list[str] = []
    tried: Path | None = None
    if pointed_at is not None:
        if pointed_at in ("", ".", "..") or "/" in pointed_at or "\\" in pointed_at or "\0" in pointed_at:
            problems.append(
                f"the pointer file {folder / POINTER_NAME} holds {pointed_at[:200]!r}; expected the bare name of a file"
            )
        else:
            tried = folder / pointed_at
            try:
                return choose_file(tried)
            except CheckpointError as error:
                problems.append(str(error))
    best = _newest_good(folder, tried, problems)
    if best is None:
        if pointed_at is None and not problems:
            return None
        raise CheckpointError(
            f"no checkpoint in {folder} can be resumed from: {'; '.join(problems)}. To start anew, use another "
            f"OUTPUT_DIR or empty this one"
        )
    if pointed_at is None:
        problems.insert(0, f"there is no pointer file {folder / POINTER_NAME}")
    warning = f"{'; '.join(problems)}: going on from the newest good file, {best.path}"
    logger.warning("%s", warning)
    return ResumeChoice(best.path, best.state, best.iteration, warning)


def _newest_good(folder: Path, tried: Path | None, problems: list[str]) -> ResumeChoice | None:
    """The checkpoint of the highest iteration; what is damaged is added to ``problems``.

    Files of weights alone, put there by hand, are no checkpoints of the run and do not count as damaged ones.
    """
    best: ResumeChoice | None = None
    # Of equal ones the last wins: the best model last but one would be an odd choice, so it goes first.
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: (path.name != f"{BEST_NAME}{SUFFIX}", path.name)):
        if path == tried or path.name.startswith("."):
            continue
        try:
            state = load_checkpoint(path)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        iteration = state.get("iteration")
        if type(iteration) is int and iteration >= 0 and (best is None or iteration >= best.iteration):
            best = ResumeChoice(path, state, iteration)
    return best
