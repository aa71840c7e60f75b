"""A loop of one's own, two networks that teach each other (Zhang et al., Deep mutual learning, CVPR 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fastreid_lite.checkpoint import Checkpointer
from fastreid_lite.engine import TrainerBase, hooks
from fastreid_lite.storage.writers import CommonMetricPrinter
from fastreid_lite.utils.logger import setup_logger


class PointLoader:
    """20 batches of points with two classes, each a function of its position, so a resumed run misses none."""

    def __len__(self) -> int:
        return 20

    def set_position(self, epoch: int, batch: int) -> None:  # the trainer calls it where a run begins or goes on
        self._next = 20 * epoch + batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for seed in range(self._next, 20 * (self._next // 20 + 1)):
            self._next = seed + 1
            points = torch.rand(64, 2, generator=torch.Generator().manual_seed(seed)) - 0.5
            yield points, (points.prod(1) > 0).long()


class MutualLearning(TrainerBase):
    """Says what one step is: hooks, logs, checkpoints, exact resuming and the stop are those of every trainer."""

    def __init__(self) -> None:
        super().__init__()
        self.networks = [nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in range(2)]
        self.optimizers = [torch.optim.Adam(network.parameters(), lr=0.03) for network in self.networks]
        self.parts: list[Any] = [*self.networks, *self.optimizers]
        self.set_loader(PointLoader())

    def run_step(self) -> None:
        points, labels = self.next_batch()
        first, second = (network(points) for network in self.networks)
        for number, (own, other) in enumerate([(first, second), (second, first)]):
            labelled = nn.functional.cross_entropy(own, labels)
            mutual = nn.functional.kl_div(own.log_softmax(1), other.detach().softmax(1), reduction="batchmean")
            self.optimizers[number].zero_grad()
            (labelled + mutual).backward()
            self.storage.put_scalars(**{f"loss_{number}": labelled, f"mutual_{number}": mutual})
        self.after_backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for part, saved in zip(self.parts, state["parts"]):
            part.load_state_dict(saved)


def main(folder: str = "output/own_run_step", steps: int = 400) -> MutualLearning:
    """Train up to step ``steps``; where ``folder`` holds a checkpoint, go on from there."""
    torch.manual_seed(0)
    trainer, checkpointer = MutualLearning(), Checkpointer(folder)
    saver, writer = hooks.PeriodicCheckpointer(checkpointer, 100), hooks.PeriodicWriter([CommonMetricPrinter()], 50)
    trainer.register_hooks([saver, writer])
    if (found := checkpointer.find_resume()) is not None:
        trainer.load_state_dict(found.state)
    trainer.train(trainer.iter, steps)
    return trainer


if __name__ == "__main__":
    setup_logger()
    main()
