"""What every guard of the update does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.finite import POLICIES, zero_momentum
from fastreid_lite.engine.logic import Losses

Norms = Sequence[torch.Tensor]


class Guard:
    """Keeps an update from being made with gradients that are not finite; see the module ``guard`` for the kinds.

    Args:
        optimizer: whose update is guarded.
        names: name of each parameter by its id, for messages.
        scaler: the gradient scaler, None where there is none.
        policy: "raise", or "skip": leave the step out, count it, and go on.

    Attributes:
        skipped: steps left out under the policy "skip".
        total: the total loss that was looked at last: its value where it was read, else the tensor.
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
        self.total: float | torch.Tensor = 0.0
        self._names = names
        self._ones: dict[torch.device, torch.Tensor] = {}
        self._finds: dict[torch.device, torch.Tensor] = {}
        self._plain_zero_grad = type(optimizer).zero_grad is torch.optim.Optimizer.zero_grad
        self._alike: torch.Tensor | None = None
        self._one = torch.ones(())
        self._count = 0
        self._first_step_unsafe = False
        self.prepare()

    def prepare(self) -> None:
        """Make skipping a step safe: before a run, after a state was loaded, where the scaler was exchanged."""
        self._first_step_unsafe = self.scaler is not None and zero_momentum(self.optimizer)

    def before_backward(self, total: torch.Tensor, losses: Losses, iteration: int, batch: Any) -> torch.Tensor | None:
        """Look at the loss of one batch; back comes the gradient to begin the backward pass with, None for 1."""
        raise NotImplementedError

    def update(self, norms: Norms, iteration: int, clipper: GradientClipper | None) -> bool:
        """Clip, and step the optimizer, where gradients and ``norms`` are finite; False where it is known that not."""
        raise NotImplementedError

    def flagged(self) -> bool:
        """True where something is known here that the other processes do not know; reads the device."""
        return False

    def report(self) -> None:
        """Raise what :meth:`flagged` found, on every process. Collective."""

    def _find(self, extra: Norms) -> list[torch.Tensor]:
        """The flags, one for each device, set to 1 where a gradient is not finite; never cleared here."""
        gradients = [
            gradient
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if (gradient := parameter.grad) is not None
        ]
        count = len(gradients) + len(extra)
        if self._alike is not None and count == self._count:
            # As in the step before, and in nearly every model: one device, one type, nothing sparse. So no gradient
            # needs to be asked what it is, which would cost more than the check.
            torch._amp_foreach_non_finite_check_and_unscale_([*gradients, *extra], self._alike, self._one)
            return [self._alike]
        kinds: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
        for gradient in [*gradients, *extra]:
            kinds.setdefault((gradient.device, gradient.dtype), []).append(_dense(gradient))
        for (device, _), tensors in kinds.items():
            self._check(tensors, self._flag(device))
        alike = len(kinds) == 1 and all(gradient.layout is torch.strided for gradient in gradients)
        self._alike, self._count = None, count
        if alike:
            device = next(iter(kinds))[0]
            self._alike, self._one = self._finds[device], self._ones[device]
        return list(self._finds.values())

    def clear_gradients(self) -> None:
        """What ``optimizer.zero_grad()`` does, without its bookkeeping, which costs as much as the guard."""
        if not self._plain_zero_grad:
            self.optimizer.zero_grad()
            return
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _flag(self, device: torch.device) -> torch.Tensor:
        if device not in self._finds:
            self._finds[device] = torch.zeros((), device=device)
        return self._finds[device]

    def _check(self, tensors: list[torch.Tensor], found: torch.Tensor) -> None:
        """Set ``found`` to 1 where a value is not finite: one pass for all ``tensors``, of one device and type."""
        one = self._ones.get(found.device)
        if one is None:
            one = self._ones[found.device] = torch.ones((), device=found.device)
        # The check of torch's own gradient scaler, with a scale of one.
        torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, one)

    def _clear(self) -> None:
        for found in self._finds.values():
            found.zero_()

    def _scaled_step(self, norms: Norms, clipper: GradientClipper | None) -> None:
        """As the scaler does it: left out where a gradient, or a norm, is not finite; and another scale then."""
        scaler = self.scaler
        assert scaler is not None
        found: dict[Any, torch.Tensor] = scaler._found_inf_per_device(self.optimizer)
        for norm in norms:
            self._check([norm], found[norm.device])
        if clipper is not None:
            clipper.clip(self.optimizer, norms)
        if not self._first_step_unsafe:
            scaler.step(self.optimizer)
        elif not any_set(found.values()):
            scaler.step(self.optimizer)
            self._first_step_unsafe = False
        scaler.update()

    def _bad_gradients(self) -> list[str]:
        return [
            self._names.get(id(parameter), "a parameter without a name")
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None and not bool(torch.isfinite(_dense(parameter.grad)).all())
        ]

    def _rates(self) -> list[Any]:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [rate.detach().clone() if isinstance(rate, torch.Tensor) else rate for rate in rates]


def any_set(flags: Iterable[torch.Tensor]) -> bool:
    """True where one of ``flags`` is not zero; reads the device."""
    # A loop, not any(): this runs at every step, and a generator costs a microsecond.
    for flag in flags:  # noqa: SIM110
        if flag.item():
            return True
    return False


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    """What a gradient holds: of a sparse one, as embeddings may have it, the values alone."""
    return gradient if gradient.layout is torch.strided else gradient._values()
