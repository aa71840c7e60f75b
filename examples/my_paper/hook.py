"""A hook that changes a number as the run goes on."""

from __future__ import annotations

from fastreid_lite.engine import HookBase
from fastreid_lite.engine.hooks.base import CHANGE

from .loss import RingLoss


class RampUp(HookBase):
    """Lets the weight of a loss grow in a straight line. A function of the step, so a resumed run needs no state of it.

    Args:
        loss: whose ``weight`` is set before each step.
        steps: the weight has its full value from this step on; 0 for from the first.
    """

    priority = CHANGE

    def __init__(self, loss: RingLoss, steps: int) -> None:
        self._loss = loss
        self._full = loss.weight
        self._steps = steps

    def before_step(self) -> None:
        done = min(self.trainer.iter / self._steps, 1.0) if self._steps else 1.0
        self._loss.weight = self._full * done
        self.trainer.storage.put_scalar("ring_weight", self._loss.weight, smoothing_hint=False)
