"""The bare model under what wraps it: DistributedDataParallel, DataParallel, torch.compile."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


def _wrapped_child(module: nn.Module) -> str | None:
    """The name under which a wrapper holds the module that it wraps; None where ``module`` is no wrapper."""
    if isinstance(module, DataParallel | DistributedDataParallel):
        return "module"
    # The class of a compiled module sits in a part of torch that takes a second to import; its child's name is enough.
    return "_orig_mod" if "_orig_mod" in module._modules else None


def unwrap_model(model: nn.Module) -> nn.Module:
    """The bare model, however often it is wrapped. A child that is really called ``module`` is no wrapper's.

    >>> bare = nn.Linear(2, 2)
    >>> unwrap_model(DataParallel(bare)) is bare, unwrap_model(bare) is bare
    (True, True)
    """
    child = _wrapped_child(model)
    while child is not None:
        inner = model._modules[child]
        assert inner is not None
        model, child = inner, _wrapped_child(inner)
    return model


def _clean_prefixes(model: nn.Module) -> Iterator[tuple[str, str, nn.Module]]:
    """(prefix in the wrapped model, the same without wrappers, module) of each module, shared ones once per place."""

    def walk(module: nn.Module, raw: str, clean: str) -> Iterator[tuple[str, str, nn.Module]]:
        yield raw, clean, module
        wrapped = _wrapped_child(module)
        for name, child in module._modules.items():
            if child is not None:
                yield from walk(child, f"{raw}{name}.", clean if name == wrapped else f"{clean}{name}.")

    yield from walk(model, "", "")


def clean_names(model: nn.Module) -> dict[str, str]:
    """Each key of ``model.state_dict()`` and the key without the parts that wrappers add, at any depth."""
    clean_prefix = {raw: clean for raw, clean, _ in _clean_prefixes(model)}
    names = {}
    for key in model.state_dict():
        # Extra state and buffers may have dots of their own after the module's prefix: take the longest that fits.
        prefix = key
        while prefix not in clean_prefix:
            prefix = prefix[:-1].rpartition(".")[0]
            prefix = f"{prefix}." if prefix else ""
        names[key] = clean_prefix[prefix] + key[len(prefix) :]
    return names


def clean_parameter_names(model: nn.Module) -> dict[int, str]:
    """The first clean dotted name of each parameter, by its ``id``."""
    names: dict[int, str] = {}
    for _, clean, module in _clean_prefixes(model):
        for name, parameter in module.named_parameters(recurse=False):
            names.setdefault(id(parameter), clean + name)
    return names


def clean_state_dict(model: nn.Module) -> dict[str, torch.Tensor]:
    """``model.state_dict()`` with the names of the bare model: never ``module.`` or ``_orig_mod.`` of a wrapper.

    The tensors are those of the model, not copies.
    """
    names = clean_names(model)
    return {names[key]: value for key, value in model.state_dict().items()}
