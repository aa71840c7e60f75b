"""A hook for one point of the loop only: what is not overridden costs nothing."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from fastreid_lite.engine import HookBase, SimpleTrainer, hooks
from fastreid_lite.storage.writers import CommonMetricPrinter
from fastreid_lite.utils.logger import setup_logger


class GradientShares(HookBase):
    """Logs how the gradient's length is shared among the layers. Here gradients are there, and not yet clipped."""

    def after_backward(self) -> None:
        layers = self.trainer.model.named_children()
        lengths = {name: sum(p.grad.square().sum() for p in layer.parameters()).sqrt() for name, layer in layers}
        total = sum(lengths.values())
        # Tensors are put as they are: they are read when a log line is due, so the device is not waited for.
        self.trainer.storage.put_scalars(**{f"share_{name}": length / total for name, length in lengths.items()})


class Regression(nn.Module):
    """A model that returns its losses by name, which is all that SimpleTrainer asks of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.second = nn.Linear(16, 1)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
        inputs, wanted = batch
        return {"loss_square": F.mse_loss(self.second(self.first(inputs).tanh()), wanted)}


def main(steps: int = 200) -> SimpleTrainer:
    """Fit the sum of four numbers; the trainer, with all that it logged in ``storage``."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(32, 4, generator=generator) for _ in range(10)]
    batches = [(numbers, numbers.sum(1, keepdim=True)) for numbers in inputs]
    model = Regression()
    trainer = SimpleTrainer(model, batches, torch.optim.SGD(model.parameters(), lr=0.05))
    trainer.register_hooks([GradientShares(), hooks.PeriodicWriter([CommonMetricPrinter(steps)], 20)])
    trainer.train(0, steps)
    return trainer


if __name__ == "__main__":
    setup_logger()
    main()
