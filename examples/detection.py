"""A detector of torchvision's, trained by SimpleTrainer on boxes that this file draws."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

from fastreid_lite.engine import SimpleTrainer, hooks
from fastreid_lite.storage.writers import CommonMetricPrinter
from fastreid_lite.utils.logger import setup_logger

Example = tuple[Tensor, dict[str, Tensor]]


class Detector(nn.Module):
    """From a list of (image, target) to the call that torchvision's detectors expect.

    In training it returns a dict of losses, else a dict of boxes, labels and scores for each image.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.network = fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=2, min_size=size, max_size=size
        )

    def forward(self, batch: list[Example]) -> Any:
        images, targets = zip(*batch)
        return self.network(list(images), list(targets) if self.training else None)


def draw_example(size: int, generator: torch.Generator) -> Example:
    """A dark image (3, size, size) with one bright box, and the box as x1, y1, x2, y2 in pixels."""
    left, top = torch.randint(0, size // 2, (2,), generator=generator).tolist()
    width, height = torch.randint(size // 4, size // 2, (2,), generator=generator).tolist()
    image = 0.2 * torch.rand(3, size, size, generator=generator)
    image[:, top : top + height, left : left + width] += 0.7
    box = torch.tensor([[left, top, left + width, top + height]], dtype=torch.float32)
    return image, {"boxes": box, "labels": torch.ones(1, dtype=torch.int64)}


def main(*, steps: int = 100, size: int = 96, images: int = 2, batches: int = 8, period: int = 10) -> list[float]:
    """Train on ``batches`` lists of ``images`` images; the total loss of each log line, one every ``period`` steps."""
    generator = torch.Generator().manual_seed(0)
    loader = [[draw_example(size, generator) for _ in range(images)] for _ in range(batches)]
    model = Detector(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    trainer = SimpleTrainer(model, loader, optimizer)
    trainer.register_hooks([hooks.PeriodicWriter([CommonMetricPrinter(steps)], period)])
    trainer.train(0, steps)
    return [value for value, _ in trainer.storage.history("total_loss")]


if __name__ == "__main__":
    setup_logger()
    main()
