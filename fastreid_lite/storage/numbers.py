"""What may be put into the storage, and how it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def admit(name: str, value: Any) -> Any:
    """``value`` as something that may be kept: a float, or a detached tensor of one element."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name!r} has shape {tuple(value.shape)}: a scalar was expected; reduce it first")
        # A copy, on the device: what the caller does to its tensor later must not change what was put.
        return float(value.item()) if value.is_cpu else value.detach().clone()
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return float(value.reshape(()))
    if isinstance(value, np.ndarray):
        raise ValueError(f"{name!r} has shape {value.shape}: a scalar was expected; reduce it first")
    raise TypeError(f"{name!r} is a {type(value).__name__}: a number or a tensor of one element was expected")


def read(pending: dict[str, list[Any]]) -> dict[str, list[float]]:
    """The numbers of every name that has any; tensors come over with one copy for each device."""
    pending = {name: values for name, values in pending.items() if values}
    if all(set(map(type, values)) == {float} for values in pending.values()):
        return pending  # as it always is on the host
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    numbers: dict[str, list[float]] = {}
    places: dict[tuple[torch.device, torch.dtype], list[tuple[list[float], int]]] = {}
    for name, values in pending.items():
        if values:
            numbers[name] = values
        # A name's values may be numbers and tensors mixed, where a model puts now one and now the other.
        for place, value in enumerate(values):
            if type(value) is not float:
                group = (value.device, value.dtype)
                groups.setdefault(group, []).append(value.reshape(()))
                places.setdefault(group, []).append((values, place))
    for group, tensors in groups.items():
        for (values, place), number in zip(places[group], torch.stack(tensors).tolist()):
            values[place] = float(number)
    return numbers
