"""From the name of a device to its runtime."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from fastreid_lite.runtime.base import Runtime
from fastreid_lite.runtime.devices import CPURuntime, CUDARuntime, MPSRuntime, XPURuntime
from fastreid_lite.utils.registry import Registry

logger = logging.getLogger(__name__)

RUNTIME_REGISTRY = Registry("device", "MODEL.DEVICE")
RUNTIME_REGISTRY.register(CPURuntime, name="cpu")
RUNTIME_REGISTRY.register(CUDARuntime, name="cuda")
RUNTIME_REGISTRY.register(MPSRuntime, name="mps")
RUNTIME_REGISTRY.register(XPURuntime, name="xpu")


def register(name: str, runtime: type[Runtime]) -> None:
    """Make ``runtime`` the class that serves the device ``name`` ("mydev", without a number).

    Raises:
        KeyError: the name is taken by another class.
    """
    RUNTIME_REGISTRY.register(runtime, name=name)


def _available(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    if kind == "mps":
        return torch.backends.mps.is_available()
    if kind == "xpu":
        return torch.xpu.is_available()
    return True


def resolve_device(name: str) -> str:
    """The device that ``name`` means on this machine.

    "auto" is the first of cuda, xpu, mps that is there, else the CPU. A recipe that asks for a device which is not
    there gets the CPU and a warning: it goes on, slower.

    Raises:
        KeyError: no device of that name is known.
    """
    if name == "auto":
        return next((kind for kind in ("cuda", "xpu", "mps") if _available(kind)), "cpu")
    kind = name.partition(":")[0]
    RUNTIME_REGISTRY.get(kind)
    if not _available(kind):
        logger.warning(f"MODEL.DEVICE is {name!r}, which this machine does not have: using the CPU")
        return "cpu"
    return name


def get_runtime(device: str | torch.device) -> Runtime:
    """The runtime that serves ``device`` ("auto", "cpu", "cuda:1", a name of one's own, or a ``torch.device``)."""
    name = resolve_device(str(device))
    return RUNTIME_REGISTRY.get(name.partition(":")[0])(name)


def to(value: Any, device: str | torch.device) -> Any:
    """``value`` (a module, a tensor, or containers of tensors) on ``device``, by that device's runtime."""
    runtime = get_runtime(device)
    return runtime.move_module(value) if isinstance(value, nn.Module) else runtime.move_tensors(value)
