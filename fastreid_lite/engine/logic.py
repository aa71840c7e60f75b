"""What a model's answer means: both kinds of training model, as one function from a batch to a dict of losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from fastreid_lite.checkpoint.wrappers import unwrap_model

Losses = Mapping[str, torch.Tensor]


def loss_function(model: nn.Module) -> Callable[[Any], Losses]:
    """The function from a batch to named losses for either kind of model.

    One kind returns its loss, or a dict of losses, from ``model(batch)``. The other returns heads and has a method
    ``losses(outs)`` that takes them and nothing else; wrapped in DistributedDataParallel or not.
    """
    losses = getattr(unwrap_model(model), "losses", None)
    takes_outs = inspect.ismethod(losses) and _takes_one(losses)

    def from_heads(batch: Any) -> Losses:
        return _named(losses(model(batch)))  # type: ignore[misc]

    def from_losses(batch: Any) -> Losses:
        return _named(model(batch))

    return from_heads if takes_outs else from_losses


def _takes_one(method: Callable[..., Any]) -> bool:
    required = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) == 1


def _named(losses: Any) -> Losses:
    return losses if isinstance(losses, dict) else {"loss": losses}


def total_loss(losses: Losses) -> torch.Tensor:
    """The sum of the terms, without the addition of zero that ``sum`` begins with.

    Raises:
        ValueError: there is no term.
    """
    total: torch.Tensor | None = None
    for term in losses.values():
        total = term if total is None else total + term
    if total is None:
        raise ValueError("the model returned an empty dict of losses: at least one loss is needed to train")
    return total


def check_losses(losses: Any, model: nn.Module) -> None:
    """Refuse what cannot be trained on, with words; asked at the first step, so that later ones pay nothing.

    Raises:
        TypeError: a loss is no tensor. ValueError: one is no scalar, or none depends on a parameter.
    """
    kind = type(unwrap_model(model)).__name__
    if not losses:
        raise ValueError(f"{kind} returned an empty dict of losses: at least one loss is needed to train")
    for name, term in losses.items():
        if not isinstance(term, torch.Tensor):
            raise TypeError(
                f"{kind} returned {name!r} of type {type(term).__name__}: in training mode a model returns a loss, or "
                f"a dict of losses, each a scalar tensor; one that returns heads needs a method losses(outs)"
            )
        if term.numel() != 1:
            raise ValueError(f"the loss {name!r} has shape {tuple(term.shape)}: a scalar was expected; reduce it first")
    if not any(term.requires_grad for term in losses.values()):
        raise ValueError(
            f"no loss of {kind} depends on a parameter that trains ({', '.join(losses)}): nothing to learn"
        )
