"""The only things that go into a checkpoint: plain containers, plain values, tensors on the CPU."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

_VALUES = (type(None), bool, int, float, str, bytes)


def to_plain(state: Any, where: str = "") -> Any:
    """A copy of ``state`` that ``torch.load`` reads back under its guard (``weights_only=True``).

    Containers are copied; values stay; tensors are detached, brought to the CPU, and cut out of a larger storage (a
    row of a big table must not bring the table along). Tensors that share all of their storage still share it. Tensors
    that are on the CPU already and have a storage of their own are not copied: write the result before they change.

    Allowed are dict, OrderedDict, list, tuple, None, bool, int, float, str, bytes and torch.Tensor, by exact type:
    numpy's numbers pass for floats and enumerations for ints, but do not load under the guard.

    Args:
        state: the tree.
        where: how the root is called in messages; "" for a bare key path.

    Raises:
        TypeError: something else; the message names its key path and what to store instead.
    """
    return _Converter().convert(state, where)


class _Converter:
    """One conversion: remembers the tensors done, so that what was shared stays shared."""

    def __init__(self) -> None:
        self.done: dict[tuple[Any, ...], torch.Tensor] = {}

    def convert(self, value: Any, where: str) -> Any:
        kind = type(value)
        if kind in _VALUES:
            return value
        if kind is dict or kind is OrderedDict:
            items = [(self.key(key, where), self.convert(item, _join(where, key))) for key, item in value.items()]
            if kind is dict:
                return dict(items)
            ordered = OrderedDict(items)
            if hasattr(value, "_metadata"):  # versions of a module's layers, which loading reads
                ordered._metadata = self.convert(value._metadata, _join(where, "_metadata"))  # type: ignore[attr-defined]
            return ordered
        if kind is list or kind is tuple:
            return kind(self.convert(item, f"{where}[{position}]") for position, item in enumerate(value))
        if isinstance(value, torch.Tensor):
            return self.tensor(value, where)
        raise TypeError(f"{_refusal(value, where)}; {_advice(value)}")

    def key(self, key: Any, where: str) -> Any:
        plain = type(key) in _VALUES or (type(key) is tuple and all(type(part) in _VALUES for part in key))
        if not plain:
            raise TypeError(f"{_refusal(key, where)} as a key; use a str, an int or a tuple of such")
        return key

    def tensor(self, value: torch.Tensor, where: str) -> torch.Tensor:
        tensor = value.detach()
        if type(tensor) is not torch.Tensor:
            raise TypeError(f"{_refusal(value, where)}; store a torch.Tensor of its values")
        if tensor.layout is not torch.strided:
            return tensor.cpu()
        storage = tensor.untyped_storage()
        address = (storage.data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        if address in self.done and storage.data_ptr() != 0:
            return self.done[address]
        on_cpu = tensor.cpu()
        if on_cpu.untyped_storage().nbytes() > on_cpu.numel() * on_cpu.element_size():
            on_cpu = on_cpu.clone(memory_format=torch.contiguous_format)
        self.done[address] = on_cpu
        return on_cpu


def _join(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _refusal(value: Any, where: str) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"the checkpoint has a {name} at {where or 'its root'}, which would not load under weights_only=True"


def _advice(value: Any) -> str:
    if type(value).__module__ == "numpy":
        return "store float(value), int(value), or torch.from_numpy(array)"
    if isinstance(value, torch.nn.Module):
        return "store its state_dict()"
    return "store plain containers, numbers, strings and tensors"
