"""The devices that come with torch."""

from __future__ import annotations

import logging
from typing import TypeVar

import torch

from fastreid_lite.runtime.base import Runtime
from fastreid_lite.utils import comm

logger = logging.getLogger(__name__)

T = TypeVar("T")


def _numbered(device: torch.device | str, count: int) -> torch.device | str:
    """``device`` with a number: its own, or that of this process's local rank.

    Raises:
        ValueError: this machine has no device of that number.
    """
    kind, _, number = str(device).partition(":")
    if not number:
        return f"{kind}:{comm.get_local_rank() % max(count, 1)}"
    if number.isdigit() and int(number) >= count > 0:
        there = f"{kind}:0" if count == 1 else f"{kind}:0 to {kind}:{count - 1}"
        raise ValueError(f"MODEL.DEVICE is {str(device)!r}, but this machine has {there}: use one that is there")
    return device


class CPURuntime(Runtime):
    """The host. bfloat16 autocast by default; float16 is honoured, with a scaler."""

    def prepare(self) -> None:
        # Small networks run into denormal numbers as they train, and the CPU handles those many times slower. The
        # setting is the thread's; threads that are started later inherit it, so it comes before the first computation.
        torch.set_flush_denormal(True)

    def amp_dtype(self, name: str = "auto") -> torch.dtype:
        """As the base class; says so where this CPU only emulates the type, which is many times slower than float32."""
        dtype = super().amp_dtype(name)
        supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
        if dtype is torch.bfloat16 and not supported():
            logger.warning(
                "this CPU has no bfloat16 arithmetic and emulates it, several times slower than float32: "
                "SOLVER.AMP.ENABLED False is faster here"
            )
        return dtype

    def move_batch(self, batch: T) -> T:
        """``batch`` itself: loaders give batches on the host."""
        return batch


class CUDARuntime(Runtime):
    """An NVIDIA (or ROCm) GPU; without a number, the one of this process's local rank."""

    backend = "nccl"
    pins = True
    asynchronous = True

    def __init__(self, device: torch.device | str) -> None:
        super().__init__(_numbered(device, torch.cuda.device_count()))

    def prepare(self) -> None:
        torch.cuda.set_device(self.device)

    def amp_dtype(self, name: str = "auto") -> torch.dtype:
        """As the base class, but "auto" is float16 (with a scaler), which every GPU has."""
        return torch.float16 if name == "auto" else super().amp_dtype(name)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def peak_memory(self) -> float | None:
        return torch.cuda.max_memory_allocated(self.device) / 2**20


class MPSRuntime(Runtime):
    """An Apple GPU."""

    asynchronous = True

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def peak_memory(self) -> float | None:
        return torch.mps.current_allocated_memory() / 2**20


class XPURuntime(Runtime):
    """An Intel GPU; without a number, the one of this process's local rank."""

    backend = "xccl"
    asynchronous = True

    def __init__(self, device: torch.device | str) -> None:
        super().__init__(_numbered(device, torch.xpu.device_count()))

    def prepare(self) -> None:
        torch.xpu.set_device(self.device)

    def synchronize(self) -> None:
        torch.xpu.synchronize(self.device)

    def peak_memory(self) -> float | None:
        return torch.xpu.max_memory_allocated(self.device) / 2**20
