"""The loop that evaluates."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import nn

from fastreid_lite.checkpoint.wrappers import unwrap_model
from fastreid_lite.engine.random_state import kept_random_state
from fastreid_lite.runtime import Runtime, get_runtime
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)


class Evaluator(Protocol):
    """Collects what a model gives for batches, and turns it into numbers."""

    def reset(self) -> None:
        """Forget what was collected."""

    def process(self, batch: Any, outputs: Any) -> None:
        """Collect the outputs for one batch."""

    def evaluate(self) -> Mapping[str, Any] | None:
        """The numbers, the same on every process. Collective where there are several."""


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """``model`` in eval mode, every submodule put back to the mode that it was in, however the block ends."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def inference_on_dataset(
    model: nn.Module, data_loader: Iterable[Any], evaluator: Evaluator, *, runtime: Runtime | None = None
) -> Mapping[str, Any]:
    """Run ``model`` in eval mode over ``data_loader`` without gradients; what ``evaluator`` makes of it comes back.

    An observer: it draws from no global random state, and modes are put back whatever happens. With several processes
    the buffers of rank 0 (batch-norm statistics) are used on all, as the next training forward would do.

    Args:
        model: wrapped or not; the bare model is called.
        data_loader: this process's share of the batches; it may be empty.
        evaluator: see :class:`Evaluator`.
        runtime: where it computes; None for the device of the model's first parameter.
    """
    bare = unwrap_model(model)
    if runtime is None:
        first = next(bare.parameters(), None)
        runtime = get_runtime("cpu" if first is None else first.device)
    comm.broadcast_tensors(bare.buffers())
    evaluator.reset()
    start = time.perf_counter()
    images = 0
    # The random state is kept, since torch's own DataLoader draws a seed from the global generator.
    with kept_random_state(), evaluating(bare), torch.no_grad():
        for batch in data_loader:
            outputs = bare(runtime.move_batch(batch))
            evaluator.process(batch, outputs)
            images += len(outputs) if isinstance(outputs, torch.Tensor) else 1
    runtime.synchronize()
    forward = time.perf_counter() - start
    results = evaluator.evaluate() or {}
    total = time.perf_counter() - start
    images = sum(comm.all_gather_object(images))
    logger.info(f"evaluated {images} images in {total:.1f} s: {forward:.1f} s outputs, {total - forward:.1f} s numbers")
    return results
