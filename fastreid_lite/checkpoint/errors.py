"""What goes wrong with checkpoints."""

from __future__ import annotations


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used. The message names the file, what is wrong with it and what to do."""
