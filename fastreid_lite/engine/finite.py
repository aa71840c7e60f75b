"""Not finite: how it is found, and what is said of it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fastreid_lite.utils import comm

POLICIES, MODES = ("raise", "skip"), ("auto", "immediate", "deferred")


class NonFiniteError(FloatingPointError):
    """A loss or a gradient became infinite or NaN. No update of that step or of a later one was applied."""


@dataclass
class Evidence:
    """What is kept of a step until it is known to be finite.

    Args:
        iteration: the step.
        losses: (name, value) of each term, tensors unread; several rows of a name where steps accumulate.
        rates: learning rate of each parameter group, tensors unread.
        paths: image files of the step.
        found: device flag as it was after this step; None where it was read at once.
    """

    iteration: int
    losses: list[tuple[str, Any]] = field(default_factory=list)
    rates: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    found: torch.Tensor | None = None

    def values(self) -> dict[str, float]:
        """Each term as a number; of several rows the first that is not finite, else the last."""
        read: dict[str, float] = {}
        for name, value in self.losses:
            number = float(value)
            if name not in read or math.isfinite(read[name]):
                read[name] = number
        return read

    def add_batch(self, batch: Any) -> None:
        """Remember which images a batch held, where it says so."""
        if isinstance(batch, Mapping):
            self.paths.extend(batch.get("img_paths", ()))


class Ring:
    """The evidence of the last steps, for a flag that is read later."""

    def __init__(self, size: int = 1024) -> None:
        self.steps: deque[Evidence] = deque(maxlen=size)

    def first_bad(self) -> Evidence | None:
        """The first step after which the flag was set, or a loss not finite; reads the device."""
        for evidence in self.steps:
            if evidence.found is not None and bool(evidence.found):
                return evidence
            if any(not math.isfinite(value) for value in evidence.values().values()):
                return evidence
        return None


def explain(evidence: Evidence, gradients: Sequence[str], norms: Sequence[torch.Tensor] = ()) -> str:
    """The sentence for one process: which terms, which parameters' gradients or else norms, rates, images."""
    values = evidence.values()
    bad = [name for name, value in values.items() if not math.isfinite(value)]
    terms = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(float(rate) for rate in evidence.rates))
    parts = [f"losses: {terms}"] if terms else []
    if not bad and gradients:
        more = f" and {len(gradients) - 3} more" if len(gradients) > 3 else ""
        parts.append(f"gradient of: {', '.join(gradients[:3])}{more}")
    elif not bad and norms:
        found = ", ".join(f"{float(norm):g}" for norm in norms)
        parts.append(f"each gradient is finite, but not their norm: {found}")
    if rates:
        parts.append(f"lr: {rates}")
    if evidence.paths:
        more = f" and {len(evidence.paths) - 4} more" if len(evidence.paths) > 4 else ""
        parts.append(f"images: {', '.join(evidence.paths[:4])}{more}")
    return "; ".join(parts)


def raise_everywhere(iteration: int, own: str | None, *, gradient: bool) -> None:
    """Raise the same error on every process, with the words of the processes that have something to say.

    Collective where there are several processes: each calls it, on the way to the error.

    Args:
        iteration: the step, the same on every process.
        own: what this process knows; None for nothing.
        gradient: the losses of this process are finite, a gradient is not.
    """
    reports = comm.all_gather_object((own, gradient))
    said = [(rank, words) for rank, (words, only_gradient) in enumerate(reports) if words and not only_gradient]
    what = "Loss" if said else "Gradient"
    said = said or [(rank, words) for rank, (words, _) in enumerate(reports) if words]
    where = "; ".join(f"rank {rank}: {words}" if len(reports) > 1 else str(words) for rank, words in said)
    raise NonFiniteError(
        f"{what} became infinite or NaN at iteration={iteration}! {where}. The update of this step was not applied"
    )


def zero_momentum(optimizer: torch.optim.Optimizer) -> bool:
    """Give fused SGD its momentum buffers, at zero, which is what its first step makes of them.

    Left alone it makes them in its first step, and where that step is skipped it takes uninitialised memory for them.

    Returns:
        True where that is no help (with dampening, the first gradient goes in undamped): the first step must not be
        skipped by the optimizer itself.
    """
    damped = False
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.SGD) and group.get("fused") and group["momentum"]:
            for parameter in group["params"]:
                if parameter.requires_grad and "momentum_buffer" not in optimizer.state.get(parameter, {}):
                    if group["dampening"]:
                        damped = True
                    else:
                        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return damped
