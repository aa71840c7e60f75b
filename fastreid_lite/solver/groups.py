"""Which parameter trains with which rate and decay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from fastreid_lite.checkpoint.wrappers import clean_parameter_names

_NORM_TYPES = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm)


def parameter_groups(
    model: nn.Module,
    *,
    base_lr: float,
    weight_decay: float,
    weight_decay_norm: float,
    weight_decay_bias: float,
    bias_lr_factor: float = 1.0,
    heads_lr_factor: float = 1.0,
    freeze_layers: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """The parameters that train, in as few groups as their settings allow, by fast-reid's rules.

    - a parameter of a normalisation layer decays with ``weight_decay_norm``;
    - one called ``bias`` decays with ``weight_decay_bias``, in a normalisation layer too, and its rate is multiplied by
      ``bias_lr_factor``;
    - one whose name begins ``heads.`` has its rate multiplied by ``heads_lr_factor``, a bias there by both factors;
    - one with ``requires_grad`` False is left out, one that two modules share counts once, under its first name;
    - where ``freeze_layers`` are given, parameters under them stand in groups of their own, so that whoever freezes
      them for a while finds them; their rate and decay are as above.

    Parameters with equal settings share a group: optimizers work group by group, so few groups are fast. Names are
    those of the bare model, also where it is wrapped for several processes or compiled.

    Args:
        model: whose parameters; nothing in it is changed.
        base_lr: the rate, above or equal to 0.
        weight_decay: decay of all that no rule names.
        weight_decay_norm: see above.
        weight_decay_bias: see above.
        bias_lr_factor: see above.
        heads_lr_factor: see above.
        freeze_layers: regular expressions matched from the start of a name, as ``backbone`` or ``backbone.layer1``.

    Returns:
        Groups for a torch optimizer with the entries ``params``, ``lr``, ``weight_decay``, and ``name`` (the kinds of
        parameter in it: base, norm, bias, heads, heads.norm, heads.bias, joined by ``+``; ", frozen" at the end under
        ``freeze_layers``), ``base_lr`` (what a schedule starts from), ``param_names`` and ``frozen`` (bool). The order
        is that of the first parameter of each, but a group at the plain base rate comes first if there is one: group 0
        is the one whose rate is logged as ``lr``.

    Raises:
        ValueError: nothing to train, or a setting that is negative.
    """
    _refuse_negative(
        {
            "BASE_LR": base_lr,
            "WEIGHT_DECAY": weight_decay,
            "WEIGHT_DECAY_NORM": weight_decay_norm,
            "WEIGHT_DECAY_BIAS": weight_decay_bias,
            "BIAS_LR_FACTOR": bias_lr_factor,
            "HEADS_LR_FACTOR": heads_lr_factor,
        }
    )
    groups: dict[tuple[float, float, bool], dict[str, Any]] = {}
    kinds: dict[tuple[float, float, bool], list[str]] = {}
    for module, name, parameter in _trained_parameters(model):
        kind = _kind(module, name)
        lr = base_lr * (bias_lr_factor if kind.endswith("bias") else 1.0)
        lr *= heads_lr_factor if kind.startswith("heads") else 1.0
        decay = {"norm": weight_decay_norm, "bias": weight_decay_bias}.get(kind.rpartition(".")[2], weight_decay)
        frozen = any(re.match(pattern, name) for pattern in freeze_layers)
        key_of_group = (lr, decay, frozen)
        group = groups.setdefault(
            key_of_group,
            {"params": [], "param_names": [], "lr": lr, "base_lr": lr, "weight_decay": decay, "frozen": frozen},
        )
        group["params"].append(parameter)
        group["param_names"].append(name)
        if kind not in kinds.setdefault(key_of_group, []):
            kinds[key_of_group].append(kind)
    if not groups:
        raise ValueError(f"{type(model).__name__} has no parameter with requires_grad True: there is nothing to train")
    return _named_and_sorted(groups, kinds)


def _named_and_sorted(groups: dict[Any, dict[str, Any]], kinds: dict[Any, list[str]]) -> list[dict[str, Any]]:
    for key, group in groups.items():
        group["name"] = "+".join(kinds[key]) + (", frozen" if group["frozen"] else "")
    return sorted(groups.values(), key=lambda group: "base" not in kinds_of(group))


def kinds_of(group: dict[str, Any]) -> list[str]:
    """The kinds of parameter in a group that :func:`parameter_groups` made, from its name."""
    return str(group["name"]).removesuffix(", frozen").split("+")


def _refuse_negative(settings: dict[str, float]) -> None:
    for key, number in settings.items():
        if not 0 <= number < float("inf"):
            raise ValueError(f"SOLVER.{key} is {number!r}; expected a finite number of 0 or more")


def _trained_parameters(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    """(owner, clean dotted name, parameter) of each that trains, once, in the order of ``named_parameters``."""
    names = clean_parameter_names(model)
    seen: set[int] = set()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                yield module, names[id(parameter)], parameter


def _kind(module: nn.Module, name: str) -> str:
    """What the rules see in a parameter: base, norm, bias, heads, heads.norm or heads.bias."""
    own_name = name.rpartition(".")[2]
    plain = "bias" if own_name == "bias" else "norm" if is_norm(module) else ""
    if name.startswith("heads."):
        return f"heads.{plain}" if plain else "heads"
    return plain or "base"


def is_norm(module: nn.Module) -> bool:
    """True for a normalisation layer.

    torch's own and their subclasses; and classes of other libraries with Norm in their name whose own parameters are
    scales and shifts, so of at most one dimension (timm's RmsNorm, a FrozenBatchNorm2d, but not a NormLinear).

    >>> is_norm(nn.BatchNorm2d(3)), is_norm(nn.Linear(2, 2))
    (True, False)
    """
    if isinstance(module, _NORM_TYPES):
        return True
    own = list(module.parameters(recurse=False))
    return "norm" in type(module).__name__.lower() and bool(own) and all(parameter.dim() <= 1 for parameter in own)
