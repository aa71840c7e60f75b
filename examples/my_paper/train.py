"""Training with a hook of one's own; all else as tools/train_net.py does it, flags and all.

A config names losses and datasets, but a hook is code, so a trainer registers it: override ``build_hooks``.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The folder that holds this package, in the place of the package's own, which Python puts there for a script.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from fastreid_lite.checkpoint import unwrap_model  # noqa: E402
from fastreid_lite.cli import train  # noqa: E402
from fastreid_lite.engine import DefaultTrainer, HookBase  # noqa: E402
from my_paper.hook import RampUp  # noqa: E402
from my_paper.loss import RingLoss  # noqa: E402


class PaperTrainer(DefaultTrainer):
    """The default trainer and one more hook."""

    def build_hooks(self) -> list[HookBase | None]:
        ring = next(part for part in unwrap_model(self.model).modules() if isinstance(part, RingLoss))
        return [*super().build_hooks(), RampUp(ring, self.cfg.PAPER.RAMP_ITERS)]


if __name__ == "__main__":
    train(trainer=PaperTrainer)
