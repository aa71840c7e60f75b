"""The guard at the update: nothing that is not finite reaches the weights.

It stands where gradients are final. *Immediate* reads the loss and one flag each step, which on the host costs next to
nothing, and raises at that step. *Deferred* leaves the flag on the device: it makes this update and every later one a
no-op, until somebody reads it.

With several processes the reduced gradients carry the news: a process whose loss is not finite makes its gradients NaN,
so all find the same and no collective is added to the step. A gradient scaler takes a non-finite gradient for its own
overflow and skips; there the process keeps the poison until the packed reduction has told the others.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import MODES, Evidence, Ring, explain, raise_everywhere, zero_momentum
from fastreid_lite.engine.guard_base import Guard, Norms, any_set
from fastreid_lite.engine.logic import Losses
from fastreid_lite.utils import comm


class ImmediateGuard(Guard):
    """Reads at every step, raises at that step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._evidence: Evidence | None = None
        self._poison: list[torch.utils.hooks.RemovableHandle] = []

    def prepare(self) -> None:
        super().prepare()
        self._seen: list[tuple[Losses, Any]] = []

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        self.total = value = total.item()
        self._seen.append((losses, batch))
        if self._evidence is None and not math.isfinite(value):
            self._evidence = self._remember(iteration, self._seen[-1:])
            if self.policy == "raise" and not comm.is_distributed():
                self.report()
            # Each gradient by itself: one that autograd sets to zero, behind a ReLU, would not carry the news.
            parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
            self._poison = [parameter.register_hook(_to_nan) for parameter in parameters if parameter.requires_grad]
        return None

    def update(self, norms: Norms, iteration: int, clipper: GradientClipper | None) -> bool:
        bad = self._evidence
        if self.scaler is not None:
            self._seen = []
            self._scaled_step(norms, clipper)
            if bad is not None and self.policy == "skip":
                self.skipped += 1
                self._forget()
            return bad is None
        found = self._find(norms)
        # Where a process is alone in knowing, it waits for the packed reduction.
        if not any_set(found) and (bad is None or comm.is_distributed()):
            self._seen = []
            if clipper is not None:
                clipper.clip(self.optimizer, norms)
            self.optimizer.step()
            return bad is None
        self._clear()
        if self.policy == "skip":
            self.skipped += 1
            self._forget()
            return False
        own = bad or self._remember(iteration, self._seen)
        words = explain(own, [] if bad else self._bad_gradients(), norms)
        self._forget()
        raise_everywhere(iteration, words or "no parameter is named", gradient=bad is None)
        return False

    def flagged(self) -> bool:
        return self._evidence is not None

    def report(self) -> None:
        evidence = self._evidence
        self._forget()
        iterations = [step for step in comm.all_gather_object(evidence and evidence.iteration) if step is not None]
        if iterations:
            first = min(iterations)
            own = explain(evidence, []) if evidence is not None and evidence.iteration == first else None
            raise_everywhere(first, own, gradient=False)

    def _forget(self) -> None:
        for handle in self._poison:
            handle.remove()
        self._evidence, self._seen, self._poison = None, [], []

    def _remember(self, iteration: int, seen: list[tuple[Losses, Any]]) -> Evidence:
        evidence = Evidence(iteration, rates=self._rates())
        for losses, batch in seen:
            evidence.losses.extend((name, term.item()) for name, term in losses.items())
            evidence.add_batch(batch)
        return evidence


class DeferredGuard(Guard):
    """Leaves flags on the device; they are read when somebody asks: at each period, and before each checkpoint.

    An optimizer that takes ``found_inf`` (torch's fused ones) needs no read in between; for any other one the flag is
    read once a step.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._poison: torch.Tensor | None = None
        self._ring = Ring()

    def prepare(self) -> None:
        self._first_step_unsafe = zero_momentum(self.optimizer)

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        steps = self._ring.steps
        self.total = total = total.detach()
        if not steps or steps[-1].iteration != iteration:
            if len(steps) == steps.maxlen and not comm.is_distributed() and self.flagged():
                # Nobody has asked for so long that the first bad step would leave the ring.
                self.report()
            steps.append(Evidence(iteration, rates=self._rates()))
            if self.policy == "skip" or self._poison is None:
                self._poison = torch.zeros_like(total, dtype=torch.float32)
        steps[-1].losses.extend((name, term.detach()) for name, term in losses.items())
        steps[-1].add_batch(batch)
        assert self._poison is not None
        # Zero times the loss: zero where it is finite, NaN where it is not, and NaN for all steps from there on.
        self._poison = self._poison + total.float() * 0
        return (1 + self._poison).to(total.dtype)

    def update(self, norms: Norms, iteration: int, clipper: GradientClipper | None) -> bool:
        step = self._ring.steps[-1] if self._ring.steps else Evidence(iteration)
        if self.scaler is not None:
            step.found = self._poison  # NaN, which counts as true, or zero
            self._scaled_step(norms, clipper)
            return True
        if self.policy == "skip":
            self._clear()
        # With one process no gradient needs to carry the news, so none can fail to.
        own = [self._poison] if self._poison is not None and not comm.is_distributed() else []
        found = self._find([*norms, *own])
        blind = len(found) == 1 and self._takes_flag() and not self._first_step_unsafe
        if not blind and any_set(found):
            if self.policy == "raise":
                step.found = found[0].clone()
                self.report()
            self.skipped += 1
            return False
        if clipper is not None:
            clipper.clip(self.optimizer, norms)
        if not blind:
            self.optimizer.step()
            self._first_step_unsafe = False
            return True
        step.found = found[0].clone()
        self.optimizer.grad_scale, self.optimizer.found_inf = None, found[0]  # type: ignore[attr-defined]
        try:
            self.optimizer.step()
        finally:
            del self.optimizer.grad_scale, self.optimizer.found_inf  # type: ignore[attr-defined]
        return True

    def _takes_flag(self) -> bool:
        """Asked at each step, since loading a state may change the groups."""
        groups = self.optimizer.param_groups
        return getattr(self.optimizer, "_step_supports_amp_scaling", False) and all(
            group.get("fused", True) for group in groups
        )

    def flagged(self) -> bool:
        if self.policy == "skip":
            self.skipped += sum(bool(step.found) for step in self._ring.steps if step.found is not None)
            self._ring.steps.clear()
            return False
        poisoned = self._poison is not None and not math.isfinite(float(self._poison))
        if poisoned or any_set(self._finds.values()):
            return True
        self._ring.steps.clear()
        return False

    def report(self) -> None:
        first = self._ring.first_bad()
        iterations = [step for step in comm.all_gather_object(first and first.iteration) if step is not None]
        iteration = min(iterations, default=-1)
        own = first if first is not None and first.iteration == iteration else None
        finite = own is not None and all(math.isfinite(value) for value in own.values().values())
        words = explain(own, self._bad_gradients() if finite else []) if own is not None else None
        self._forget()
        raise_everywhere(iteration, words, gradient=finite)

    def _forget(self) -> None:
        self._clear()
        self._poison = None
        self._ring.steps.clear()


def _to_nan(gradient: torch.Tensor) -> torch.Tensor:
    return gradient * math.nan


def make_guard(
    optimizer: torch.optim.Optimizer,
    *,
    names: dict[int, str],
    scaler: torch.amp.GradScaler | None,
    policy: str,
    mode: str,
    asynchronous: bool,
) -> Guard:
    """The guard for a device: "auto" is deferred where reading waits for queued work, else immediate.

    Raises:
        ValueError: ``mode`` or ``policy`` is another word.
    """
    if mode not in MODES:
        raise ValueError(f"SOLVER.NONFINITE.MODE is {mode!r}, expected one of {', '.join(MODES)}")
    kind = DeferredGuard if mode == "deferred" or (mode == "auto" and asynchronous) else ImmediateGuard
    return kind(optimizer, names=names, scaler=scaler, policy=policy)
