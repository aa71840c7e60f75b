"""The guard at the update: nothing that is not finite reaches the weights.

It stands where gradients are final. *Immediate* reads the loss and one flag each step, which on the host costs next to
nothing, and raises at that step. *Deferred* leaves the flag on the device: it makes this update and every later one a
no-op, until somebody reads it.

With several processes the reduced gradients carry the news: a process whose loss is not finite multiplies its gradient
with NaN, so all find the same and no collective is added to the step. A gradient scaler takes a non-finite gradient
for its own overflow and skips; there the process keeps the poison until the packed reduction has told the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from fastreid_lite.engine.finite import MODES, POLICIES, Evidence, Ring, explain, raise_everywhere
from fastreid_lite.engine.logic import Losses
from fastreid_lite.utils import comm


class Guard:
    """What both kinds of guard share.

    Args:
        optimizer: whose update is guarded.
        names: name of each parameter by its id, for messages.
        scaler: the gradient scaler, None where there is none.
        policy: "raise", or "skip": leave the step out, count it, and go on.

    Attributes:
        skipped: steps left out under the policy "skip".
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        names: dict[int, str],
        scaler: torch.amp.GradScaler | None = None,
        policy: str = "raise",
    ) -> None:
        if policy not in POLICIES:
            raise ValueError(f"SOLVER.NONFINITE.POLICY is {policy!r}, expected one of {', '.join(POLICIES)}")
        self.optimizer = optimizer
        self.scaler = scaler
        self.policy = policy
        self.skipped = 0
        self._names = names
        self._ones: dict[torch.device, torch.Tensor] = {}
        self._finds: dict[torch.device, torch.Tensor] = {}

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        """Look at the loss of one batch; back comes the gradient to begin the backward pass with, None for 1."""
        raise NotImplementedError

    def update(self, extra: Sequence[torch.Tensor], iteration: int) -> bool:
        """Step the optimizer where gradients and ``extra`` (norms) are finite; False where it is known that not."""
        raise NotImplementedError

    def flagged(self) -> bool:
        """True where something is known here that the other processes do not know; reads the device."""
        return False

    def report(self) -> None:
        """Raise what :meth:`flagged` found, on every process. Collective."""

    def _find(self, extra: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The flags, one for each device, set to 1 where a gradient is not finite; never cleared here."""
        grads: dict[torch.device, list[torch.Tensor]] = {}
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is not None:
                    grads.setdefault(grad.device, []).append(grad if grad.layout is torch.strided else grad._values())
        for norm in extra:
            grads.setdefault(norm.device, []).append(norm)
        for device, tensors in grads.items():
            if device not in self._finds:
                self._finds[device] = torch.zeros((), device=device)
                self._ones[device] = torch.ones((), device=device)
            # The check of torch's own gradient scaler, with a scale of one: a single pass for all tensors.
            torch._amp_foreach_non_finite_check_and_unscale_(tensors, self._finds[device], self._ones[device])
        return [self._finds[device] for device in grads]

    def _clear(self) -> None:
        for found in self._finds.values():
            found.zero_()

    def _bad_gradients(self) -> list[str]:
        return [
            self._names.get(id(parameter), "a parameter without a name")
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None and not bool(torch.isfinite(parameter.grad).all())
        ]

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]


class ImmediateGuard(Guard):
    """Reads at every step, raises at that step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._evidence: Evidence | None = None

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        if self._evidence is None:
            if math.isfinite(total.item()):
                return None
            self._evidence = self._remember(losses, iteration, batch)
        if self.policy == "raise" and not comm.is_distributed():
            self.report()
        return torch.full_like(total, math.nan)

    def update(self, extra: Sequence[torch.Tensor], iteration: int) -> bool:
        if self.scaler is not None:
            self._step_with_scaler()
            return True
        found = self._find(extra)
        if not _any(found):
            self.optimizer.step()
            return True
        if self.policy == "skip":
            self.skipped += 1
            self._clear()
            self._evidence = None
            return False
        gradients = self._bad_gradients()
        own = self._evidence
        words = explain(own, []) if own else explain(Evidence(iteration, rates=self._rates()), gradients)
        self._evidence = None
        self._clear()
        raise_everywhere(iteration, words or "no parameter is named", gradient=own is None)
        return False

    def _step_with_scaler(self) -> None:
        assert self.scaler is not None
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.policy == "skip" and self._evidence is not None:
            self.skipped += 1
            self._evidence = None

    def flagged(self) -> bool:
        return self._evidence is not None

    def report(self) -> None:
        evidence, self._evidence = self._evidence, None
        iterations = [step for step in comm.all_gather_object(evidence and evidence.iteration) if step is not None]
        if iterations:
            first = min(iterations)
            own = explain(evidence, []) if evidence is not None and evidence.iteration == first else None
            raise_everywhere(first, own, gradient=False)

    def _remember(self, losses: Losses, iteration: int, batch: Any) -> Evidence:
        evidence = Evidence(iteration, [(name, term.item()) for name, term in losses.items()], self._rates())
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
        self._takes_flag = bool(getattr(self.optimizer, "_step_supports_amp_scaling", False))

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        steps = self._ring.steps
        if not steps or steps[-1].iteration != iteration:
            steps.append(Evidence(iteration, rates=self._rates()))
            if self.policy == "skip" or self._poison is None:
                self._poison = torch.zeros_like(total.detach(), dtype=torch.float32)
        steps[-1].losses.extend((name, term.detach()) for name, term in losses.items())
        steps[-1].add_batch(batch)
        assert self._poison is not None
        # Zero times the loss: zero where it is finite, NaN where it is not, and NaN for all steps from there on.
        self._poison = self._poison + total.detach().float() * 0
        return (1 + self._poison).to(total.dtype)

    def update(self, extra: Sequence[torch.Tensor], iteration: int) -> bool:
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return True
        if self.policy == "skip":
            self._clear()
        found = self._find(extra)
        if self._ring.steps and found:
            self._ring.steps[-1].found = found[0].clone()
        if not (self._takes_flag and len(found) == 1):
            if _any(found):
                self.skipped += self.policy == "skip"
                if self.policy == "raise":
                    self.report()
                return False
            self.optimizer.step()
            return True
        self.optimizer.grad_scale, self.optimizer.found_inf = None, found[0]  # type: ignore[attr-defined]
        try:
            self.optimizer.step()
        finally:
            del self.optimizer.grad_scale, self.optimizer.found_inf  # type: ignore[attr-defined]
        return True

    def flagged(self) -> bool:
        if self.policy == "skip":
            self.skipped += sum(bool(step.found) for step in self._ring.steps if step.found is not None)
            self._ring.steps.clear()
            return False
        poisoned = self._poison is not None and not math.isfinite(float(self._poison))
        if poisoned or _any(self._finds.values()):
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
        self._clear()
        self._poison = None
        self._ring.steps.clear()
        raise_everywhere(iteration, words, gradient=finite)


def _any(flags: Iterable[torch.Tensor]) -> bool:
    return any(flag.item() for flag in flags)


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
    guard = kind(optimizer, names=names, scaler=scaler, policy=policy)
    if scaler is not None or kind is DeferredGuard:
        zero_momentum(optimizer)
    return guard


def zero_momentum(optimizer: torch.optim.Optimizer) -> None:
    """Give fused SGD its momentum buffers, at zero, which is what its first step makes of them.

    Left alone it makes them in its first step, and where that step is skipped it takes uninitialised memory for them.
    """
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.SGD) and group.get("fused") and group["momentum"]:
            if group["dampening"]:
                raise ValueError(
                    "fused SGD with dampening cannot skip its first step safely: set dampening to 0 or fused to False"
                )
            for parameter in group["params"]:
                if parameter.requires_grad and "momentum_buffer" not in optimizer.state[parameter]:
                    optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
