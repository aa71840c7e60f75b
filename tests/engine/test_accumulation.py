"""Several batches to a step: gradients by hand, logs as they were, whole windows and the short last one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.engine import hooks
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.simple_trainer import SimpleTrainer
from tests.engine.step_toys import published, weight_of, weight_trainer


class Linear(nn.Linear):
    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
        images, targets = batch
        return {"loss": (super().forward(images).squeeze(1) - targets).square().mean()}


def batches(number: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(3, 2, generator=generator), torch.randn(3, generator=generator)) for _ in range(number)]


def by_hand(weight: list[float], data: Any, window: int, steps: int, rate: float) -> list[float]:
    """d/dw of mean((x w - y)^2) is 2 mean((x w - y) x), averaged over the batches of the window."""
    windows = [data[start : start + window] for start in range(0, len(data), window)]
    for step in range(steps):
        gradient = [0.0, 0.0]
        chosen = windows[step % len(windows)]
        for images, targets in chosen:
            for x, y in zip(images.tolist(), targets.tolist()):
                error = weight[0] * x[0] + weight[1] * x[1] - y
                for place in range(2):
                    gradient[place] += 2 * error * x[place] / len(images) / len(chosen)
        weight = [w - rate * g for w, g in zip(weight, gradient)]
    return weight


def linear_trainer(number: int, window: int, rate: float = 0.05, **options: Any) -> SimpleTrainer:
    torch.manual_seed(0)
    model = Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    return SimpleTrainer(model, batches(number), optimizer, accumulate_steps=window, **options)


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize(("number", "window"), [(10, 4), (10, 1), (8, 4), (3, 5), (7, 2)])
def test_each_window_is_averaged_over_its_true_size(number: int, window: int, mode: str) -> None:
    trainer = linear_trainer(number, window, nonfinite_mode=mode)
    start = trainer.model.weight.tolist()[0]
    steps = -(-number // window)
    assert trainer.epoch_length == steps
    trainer.train(0, 2 * steps)
    assert trainer.model.weight.tolist()[0] == pytest.approx(
        by_hand(start, batches(number), window, 2 * steps, 0.05), rel=1e-5
    )
    assert trainer.epoch == 2 and all(parameter.grad is None for parameter in trainer.model.parameters())


def test_windows_are_four_four_two() -> None:
    sizes: list[int] = []

    class Counts(SimpleTrainer):
        def next_window(self) -> list[Any]:
            window = super().next_window()
            sizes.append(len(window))
            return window

    model = Linear(2, 1)
    Counts(model, batches(10), torch.optim.SGD(model.parameters(), lr=0.1), accumulate_steps=4).train(0, 6)
    assert sizes == [4, 4, 2, 4, 4, 2]


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("options", [{}, {"amp_enabled": True, "amp_dtype": "float16"}, {"amp_enabled": True}])
def test_the_log_is_unscaled(window: int, options: dict[str, Any]) -> None:
    trainer = weight_trainer(
        lambda w, b: {"loss_a": w * 0 + 2.0}, range(10), accumulate_steps=window, clipper=GradientClipper("norm", 1.0),
        **options,
    )  # fmt: skip
    trainer.train(0, -(-10 // window))
    assert published(trainer) == {"total_loss": 2.0, "loss_a": 2.0, "grad_norm": 0.0}


def test_the_schedule_counts_steps_not_batches() -> None:
    rates: list[float] = []

    class Step:
        def lr(self, base_lr: float, iteration: int) -> float:
            return base_lr * (0.1 if iteration >= 2 else 1.0)

    trainer = weight_trainer(lambda w, b: w, range(10), accumulate_steps=4)
    trainer.register_hooks(
        [
            hooks.LRScheduler(trainer.optimizer, Step()),
            hooks.CallbackHook(after_backward=lambda t: rates.append(t.optimizer.param_groups[0]["lr"])),
        ]
    )
    trainer.train(0, 3)
    assert rates == [1.0, 1.0, 0.1] and weight_of(trainer) == pytest.approx(-2.1)


def test_after_backward_comes_once_a_step_with_the_whole_gradient() -> None:
    seen: list[float] = []
    trainer = weight_trainer(lambda w, b: w * b, [1.0, 2.0, 6.0], accumulate_steps=2)
    trainer.register_hooks(
        [hooks.CallbackHook(after_backward=lambda t: seen.append(float(next(t.model.parameters()).grad)))]
    )
    trainer.train(0, 2)
    assert seen == [1.5, 6.0]


def test_gradients_are_reduced_with_the_last_batch_of_a_window_only() -> None:
    held: list[bool] = []

    class Wrapped(Linear):
        holding = False

        def no_sync(self) -> Any:
            outer = self

            class Holds:
                def __enter__(self) -> None:
                    outer.holding = True

                def __exit__(self, *exc: object) -> None:
                    outer.holding = False

            return Holds()

        def forward(self, batch: Any) -> dict[str, torch.Tensor]:
            held.append(self.holding)
            losses = super().forward(batch)
            losses["loss"].register_hook(lambda gradient: held.append(self.holding))
            return losses

    model = Wrapped(2, 1)
    SimpleTrainer(model, batches(5), torch.optim.SGD(model.parameters(), lr=0.1), accumulate_steps=3).train(0, 2)
    # Forward and backward of each batch: three batches, then two.
    assert held == [True] * 4 + [False] * 2 + [True] * 2 + [False] * 2
