"""One small class: everything that the engine asks of a device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T")
_NO_AUTOCAST: AbstractContextManager[None] = nullcontext()
_DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


class Runtime:
    """A device and what can be done there; the defaults serve every device that torch knows by name.

    A device of one's own is a subclass, registered by name with :func:`fastreid_lite.runtime.register`; where torch
    does not know the name, its constructor passes on a device that torch knows.

    Args:
        device: where modules and tensors go.

    Raises:
        ValueError: torch does not know ``device``.
    """

    #: what ``torch.distributed`` speaks between processes on this device
    backend = "gloo"
    #: True where loaders had better pin their batches, so that copies overlap with the host
    pins = False
    #: True where reading one number waits for the work queued before it
    asynchronous = False

    def __init__(self, device: torch.device | str) -> None:
        try:
            self.device = torch.device(device)
        except RuntimeError as error:
            raise ValueError(
                f"MODEL.DEVICE is {str(device)!r}, expected a device that torch knows, with or without a number as in "
                f"'cpu:0'; {type(self).__name__}.__init__ can pass on another one"
            ) from error

    def prepare(self) -> None:
        """Make this device the one that the process works on. Called once, before the first step."""

    def move_module(self, module: nn.Module) -> nn.Module:
        """``module`` with its parameters and buffers on this device (in place, as torch does it)."""
        return module.to(self.device)

    def move_tensors(self, value: T) -> T:
        """``value`` with every tensor in it on this device; dicts, lists, tuples and named tuples are entered.

        What has a ``to`` of its own, such as a packed sequence, is asked to move itself. Copies from the host are
        non-blocking, so they overlap with its work where the source is pinned.
        """
        return _move(value, self.device)

    def move_batch(self, batch: T) -> T:
        """What a loader gave, on this device. Called once for each batch."""
        return self.move_tensors(batch)

    def amp_dtype(self, name: str = "auto") -> torch.dtype:
        """The low-precision type that ``SOLVER.AMP.DTYPE`` means here.

        Raises:
            ValueError: ``name`` is none of auto, float16, bfloat16.
        """
        if name == "auto":
            return torch.bfloat16
        if name not in _DTYPES:
            raise ValueError(f"SOLVER.AMP.DTYPE is {name!r}, expected one of auto, {', '.join(_DTYPES)}")
        return _DTYPES[name]

    def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[Any]:
        """A context in which operations run in ``dtype`` where that is safe; None for no autocast."""
        if dtype is None:
            return _NO_AUTOCAST
        return torch.autocast(self.device.type, dtype=dtype)

    def make_scaler(self, dtype: torch.dtype | None) -> torch.amp.GradScaler | None:
        """A gradient scaler where ``dtype`` needs one (float16), else None."""
        return torch.amp.GradScaler(self.device.type) if dtype is torch.float16 else None

    def synchronize(self) -> None:
        """Wait until the work queued on this device is done."""

    def peak_memory(self) -> float | None:
        """The most memory that tensors took here so far, in MiB; None where the device does not tell."""
        return None


def _move(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        # Towards the host nobody would wait for the copy to arrive.
        return value.to(device, non_blocking=value.is_cpu)
    if callable(getattr(value, "to", None)) and not isinstance(value, type):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _move(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_move(item, device) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_move(item, device) for item in value)
    return value
