"""From the SOLVER section to an optimizer."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import torch
from torch import nn

from fastreid_lite.solver.groups import parameter_groups
from fastreid_lite.utils.registry import Registry, lookup

OPTIMIZERS = Registry("optimizer", "SOLVER.OPT")
"""Optimizers of projects, beside all of ``torch.optim``: callables ``(groups, *, lr) -> torch.optim.Optimizer``."""

# LBFGS asks for a closure that computes the loss again, SparseAdam for sparse gradients: neither fits one backward.
_UNFIT = ("LBFGS", "SparseAdam")

logger = logging.getLogger(__name__)


def build_optimizer(cfg: Any, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer that ``cfg.SOLVER`` asks for, over :func:`~fastreid_lite.solver.groups.parameter_groups`.

    Where torch has a fused kernel of it for the devices and types that the parameters have now, that is used: one
    kernel a group, and the one kind that can skip a step by a flag on the device. Otherwise torch chooses its
    multi-tensor ("foreach") kind, or the plain loop. So move the model first; a model moved later still trains.

    Args:
        cfg: the whole config; of it SOLVER.OPT, BASE_LR, MOMENTUM and NESTEROV (SGD alone has them), the weight decays
            and factors, and MODEL.FREEZE_LAYERS where SOLVER.FREEZE_ITERS is not 0.
        model: whose parameters are trained.

    Raises:
        KeyError: unknown SOLVER.OPT.
        ValueError: a setting that the optimizer refuses, or nothing to train.
    """
    solver = cfg.SOLVER
    optimizer_class = lookup(_optimizers(), solver.OPT, "optimizer", "SOLVER.OPT")
    groups = parameter_groups(
        model,
        base_lr=solver.BASE_LR,
        weight_decay=solver.WEIGHT_DECAY,
        weight_decay_norm=solver.WEIGHT_DECAY_NORM,
        weight_decay_bias=solver.WEIGHT_DECAY_BIAS,
        bias_lr_factor=solver.BIAS_LR_FACTOR,
        heads_lr_factor=solver.HEADS_LR_FACTOR,
        freeze_layers=[layer for layer in cfg.MODEL.FREEZE_LAYERS if layer] if solver.FREEZE_ITERS else (),
    )
    arguments: dict[str, Any] = {"lr": solver.BASE_LR}
    if solver.OPT == "SGD":
        if solver.NESTEROV and not solver.MOMENTUM > 0:
            raise ValueError(f"SOLVER.NESTEROV needs a SOLVER.MOMENTUM above 0, got {solver.MOMENTUM!r}")
        arguments.update(momentum=solver.MOMENTUM, nesterov=solver.NESTEROV)
    elif solver.NESTEROV:
        logger.warning("SOLVER.NESTEROV True has no effect: SOLVER.OPT is %s, not SGD", solver.OPT)
    accepted = inspect.signature(optimizer_class).parameters
    if "weight_decay" not in accepted and not _takes_anything(accepted) and any(g["weight_decay"] for g in groups):
        logger.warning("the SOLVER.WEIGHT_DECAY keys have no effect: SOLVER.OPT %s has no weight decay", solver.OPT)
    if "fused" in accepted and _has_fused_kernel(optimizer_class, groups):
        arguments["fused"] = True
    try:
        optimizer: torch.optim.Optimizer = optimizer_class(groups, **arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"SOLVER.OPT {solver.OPT} refuses the settings {arguments}: {error}") from error
    return optimizer


def _optimizers() -> dict[str, Any]:
    """Every optimizer by name; one that a project registers goes before torch's of the same name."""
    from_torch = {
        name: value
        for name, value in vars(torch.optim).items()
        if inspect.isclass(value) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
    }
    return {name: value for name, value in from_torch.items() if name not in _UNFIT} | dict(OPTIMIZERS)


def _takes_anything(parameters: Any) -> bool:
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())


def _has_fused_kernel(optimizer_class: Any, groups: list[dict[str, Any]]) -> bool:
    """Try one step on one number for each device and type that the parameters have.

    torch tells only at a step whether it has a fused kernel, and the list that it looks in is private.
    """
    kinds = {(parameter.device, parameter.dtype) for group in groups for parameter in group["params"]}
    try:
        for device, dtype in kinds:
            probe = torch.zeros(1, device=device, dtype=dtype)
            probe.grad = torch.zeros_like(probe)
            optimizer_class([probe], lr=0.0, fused=True).step()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return False
    return True
