"""A boundary, as triggers see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Moment:
    """A boundary as triggers see it; the same on every process.

    Args:
        iteration: steps done.
        epoch: epochs done.
        epoch_step: steps done in the epoch in progress; 0 where one has just ended.
        epoch_length: steps of the epoch in progress (of the one just ended, where one has); None while not known.
        epoch_ended: an epoch ends here.
        seconds: the run's clock as rank 0 last told it.
        last: the run ends here, finished.
        clock_step: steps done at which ``seconds`` will next be told; None for the next boundary.
        trainer: the trainer, for functions and published numbers.
        ended_step: steps of the epoch that ends here, fewer than ``epoch_length`` where it was cut; None for all.
    """

    iteration: int
    epoch: int = 0
    epoch_step: int = 0
    epoch_length: int | None = None
    epoch_ended: bool = False
    seconds: float = 0.0
    last: bool = False
    clock_step: int | None = None
    trainer: Any = None
    ended_step: int | None = None

    @property
    def epoch_detail(self) -> float:
        """Epochs done, with the fraction of the one in progress."""
        return self.epoch + (self.epoch_step / self.epoch_length if self.epoch_length else 0.0)

    @property
    def previous_epoch_detail(self) -> float:
        """``epoch_detail`` one step earlier."""
        if not self.epoch_length:
            return self.epoch_detail
        if self.epoch_ended:
            steps = self.epoch_length if self.ended_step is None else self.ended_step
            return self.epoch - 1 + (steps - 1) / self.epoch_length
        return self.epoch + (self.epoch_step - 1) / self.epoch_length
