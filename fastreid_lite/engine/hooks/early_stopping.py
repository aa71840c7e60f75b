"""Stop when nothing gets better."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fastreid_lite.engine.hooks.base import READ, HookBase
from fastreid_lite.engine.value_triggers import EarlyStop

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

logger = logging.getLogger(__name__)


class EarlyStopping(HookBase):
    """Ends the run, finished, when a published value has not improved ``patience`` times in a row.

    Args:
        key: a published name, such as "Market1501/metric".
        patience: >= 1, counted in values, not in steps.
        mode: "max" or "min".
        min_change: by how much a value must be better to count as an improvement.
    """

    priority = READ

    def __init__(self, key: str, patience: int, mode: str = "max", *, min_change: float = 0.0) -> None:
        self.trigger: EarlyStop = EarlyStop(key, patience, mode, min_change=min_change)

    def finish(self, trainer: TrainerBase) -> None:
        if self.trigger.key not in trainer.storage.published():
            logger.warning(
                f"EarlyStopping waited for {self.trigger.key!r}, which was never published; published: "
                f"{', '.join(sorted(trainer.storage.published())) or 'nothing'}"
            )

    def __call__(self, trainer: TrainerBase) -> None:
        stop = self.trigger
        # Published values are the same everywhere, so every process comes here at the same step.
        trainer.stop(f"{stop.key} has not improved on {stop.best} for {stop.waited} evaluations", everywhere=True)
