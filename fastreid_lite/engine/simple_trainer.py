"""The usual step: one model, one optimizer, a sum of losses."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from fastreid_lite.checkpoint.wrappers import clean_state_dict, unwrap_model
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.engine.guard import make_guard
from fastreid_lite.engine.logic import check_losses, loss_function, total_loss
from fastreid_lite.engine.train_loop import TrainerBase
from fastreid_lite.engine.trainer_state import load_model, load_optimizer
from fastreid_lite.runtime import Runtime, get_runtime
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)


class SimpleTrainer(TrainerBase):
    """Steps of one optimizer over the sum of a model's losses, with AMP, accumulation, clipping and a finite guard.

    Args:
        model: in training mode ``model(batch)`` returns a loss or a dict of losses, each a scalar; or it returns heads,
            and ``model.losses(outs)`` the dict. It may be wrapped in DistributedDataParallel. It is put into training
            mode here.
        data_loader: an iterable of batches; a finite one is started again at its end. It is not touched before the
            first step.
        optimizer: over the model's parameters.
        amp_enabled: run the model under autocast.
        amp_dtype: "auto" (float16 with a scaler on CUDA, bfloat16 without one elsewhere), "float16" or "bfloat16".
        accumulate_steps: batches to a step. Gradients are averaged over them, at the end of an epoch over those that
            are left.
        epoch_length: steps to an epoch; None for what the loader's length says.
        clipper: limits gradients after unscaling; None for none.
        nonfinite_policy: "raise", or "skip": leave such a step out, count it, go on.
        nonfinite_mode: "immediate", "deferred", or "auto": deferred on devices that run behind the host.
        runtime: where it computes; None for the device of the model's first parameter.

    Attributes:
        scaler: the gradient scaler, None where there is none; another one may be put in its place before the first
            step.
    """

    def __init__(
        self,
        model: nn.Module,
        data_loader: Iterable[Any],
        optimizer: torch.optim.Optimizer,
        amp_enabled: bool = False,
        *,
        amp_dtype: str = "auto",
        accumulate_steps: int = 1,
        epoch_length: int | None = None,
        clipper: GradientClipper | None = None,
        nonfinite_policy: str = "raise",
        nonfinite_mode: str = "auto",
        runtime: Runtime | None = None,
    ) -> None:
        super().__init__()
        first = next(model.parameters(), None)
        if first is None:
            raise ValueError(f"{type(unwrap_model(model)).__name__} has no parameter: there is nothing to train")
        self.model = model.train()
        self.optimizer = optimizer
        self.amp_enabled = amp_enabled
        self.runtime = runtime or get_runtime(first.device)
        self.runtime.prepare()
        self.set_loader(data_loader, accumulate_steps=accumulate_steps, epoch_length=epoch_length)
        self._accumulates = accumulate_steps > 1
        self._amp_dtype = self.runtime.amp_dtype(amp_dtype) if amp_enabled else None
        self._clipper = clipper
        self._losses = loss_function(model)
        self._checked = False
        self._logged: list[tuple[str, float | torch.Tensor]] = []
        self.guard = make_guard(
            optimizer,
            names={id(parameter): name for name, parameter in unwrap_model(model).named_parameters()},
            scaler=self.runtime.make_scaler(self._amp_dtype),
            policy=nonfinite_policy,
            mode=nonfinite_mode,
            asynchronous=self.runtime.asynchronous,
        )

    @property
    def scaler(self) -> torch.amp.GradScaler | None:
        return self.guard.scaler

    @scaler.setter
    def scaler(self, scaler: torch.amp.GradScaler | None) -> None:
        self.guard.scaler = scaler
        self.guard.prepare()

    def before_train(self) -> None:
        # A step that failed half-way, before this run, leaves nothing behind.
        self._logged = []
        self.guard.prepare()
        self.optimizer.zero_grad()
        super().before_train()

    def run_step(self) -> None:
        """Fetch, forward, backward, update."""
        if not self.model.training:
            raise RuntimeError(
                "[SimpleTrainer] model was changed to eval mode! Whoever evaluates puts it back: use "
                "fastreid_lite.engine.inference_on_dataset, or call model.train() afterwards"
            )
        if self._accumulates:
            batches = self.next_window()
            for batch in batches[:-1]:
                with self._without_sync():
                    self._forward_backward(batch, len(batches))
            self._forward_backward(batches[-1], len(batches))
        else:
            self._forward_backward(self.next_batch(), 1)
        self._update()

    def _forward_backward(self, batch: Any, share: int) -> None:
        """Add the gradient of one batch, as 1 / ``share`` of the step's."""
        batch = self.runtime.move_batch(batch)
        if self._amp_dtype is None:
            losses = self._losses(batch)
        else:
            with self.runtime.autocast(self._amp_dtype):
                losses = self._losses(batch)
        if not self._checked:
            check_losses(losses, self.model)
            self._checked = True
        total = total_loss(losses)
        gradient = self.guard.before_backward(total, losses, self.iter, batch)
        # Read now where that is free: a loss may be a view of a weight, which the update changes.
        if "total_loss" not in losses:
            value = self.guard.total
            self._logged.append(
                ("total_loss", value.item() if isinstance(value, torch.Tensor) and value.is_cpu else value)
            )
        self._logged += [(name, term.item() if term.is_cpu else term) for name, term in losses.items()]
        if share > 1:
            total = total / share
        scaler = self.guard.scaler
        if scaler is not None:
            total = scaler.scale(total)
        total.backward(gradient)

    def _update(self) -> None:
        """From gradients to weights: unscale, ``after_backward``, clip, guard, update."""
        scaler, clipper = self.guard.scaler, self._clipper
        if scaler is not None:
            scaler.unscale_(self.optimizer)
        self.after_backward()
        norms = clipper.norms(self.optimizer) if clipper is not None else []
        logged, self._logged = self._logged, []
        applied = self.guard.update(norms, self.iter, clipper)
        self.guard.clear_gradients()
        if applied:
            put = self.storage.put_scalar
            for name, value in logged:
                put(name, value)
            if len(norms) == 1:
                put("grad_norm", norms[0])

    def _without_sync(self) -> Any:
        no_sync = getattr(self.model, "no_sync", None)
        return no_sync() if no_sync is not None else nullcontext()

    def flagged(self) -> bool:
        return self.guard.flagged()

    def report_not_finite(self) -> None:
        self.guard.report()

    def _end(self, outcome: str, error: BaseException | None = None) -> None:
        # Where neither a log nor a checkpoint asked at the last boundary, nobody did.
        if error is None and sum(comm.all_gather_object(self.flagged())):
            self.report_not_finite()
        super()._end(outcome, error)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["model"] = clean_state_dict(self.model)
        state["optimizer"] = self.optimizer.state_dict()
        state["skipped"] = self.guard.skipped
        if self.scaler is not None:
            state["scaler"] = self.scaler.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_model(unwrap_model(self.model), state["model"])
        load_optimizer(self.optimizer, state["optimizer"])
        self._load_scaler(state.get("scaler"))
        self.guard.skipped = state.get("skipped", 0)
        self.guard.prepare()
        super().load_state_dict(state)

    def _load_scaler(self, saved: dict[str, Any] | None) -> None:
        if self.scaler is not None and saved:
            self.scaler.load_state_dict(saved)
        elif self.scaler is not None:
            logger.warning("the checkpoint has no state of a gradient scaler: it starts at its default scale")
        elif saved:
            logger.warning("the checkpoint has the state of a gradient scaler, which this run does not use: left out")
