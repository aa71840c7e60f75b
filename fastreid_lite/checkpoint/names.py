"""How the files of a run are called."""

from __future__ import annotations

BEST_NAME = "model_best"
FINAL_NAME = "model_final"
POINTER_NAME = "last_checkpoint"
SUFFIX = ".pth"


def periodic_name(epoch: int, iteration: int, is_epoch_end: bool) -> str:
    """The name, without suffix, of the checkpoint that is due after step ``iteration``.

    >>> periodic_name(3, 807, True), periodic_name(3, 700, False)
    ('model_0003', 'model_iter_0000700')

    Args:
        epoch: the epoch in progress, from 0.
        iteration: the step just done, from 0.
        is_epoch_end: whether it was the last step of ``epoch``.
    """
    return f"model_{epoch:04d}" if is_epoch_end else f"model_iter_{iteration:07d}"
