"""Processes: who am I, and what do the others have. Every function does nothing at world size 1.

``torch.distributed`` is spoken here and in ``engine/launch.py`` only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist


def is_distributed() -> bool:
    """True where a process group with more than one process is up."""
    return get_world_size() > 1


def get_world_size() -> int:
    """Number of processes, 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def get_rank() -> int:
    """This process's number, in [0, world size)."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def get_local_rank() -> int:
    """This process's number on its machine, as the launcher set it (``LOCAL_RANK``), 0 without a launcher."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_main_process() -> bool:
    """True on rank 0."""
    return get_rank() == 0


def synchronize() -> None:
    """Wait until every process is here."""
    if is_distributed():
        device = _collective_device()
        dist.barrier(device_ids=None if device.index is None else [device.index])


def _collective_device() -> torch.device:
    """Where tensors of a collective must live: the CPU under gloo and MPI, else this process's accelerator."""
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or dist.get_backend() in ("gloo", "mpi"):
        return torch.device("cpu")
    return torch.device(accelerator.type, torch.accelerator.current_device_index())


def all_reduce_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Sum of ``tensor`` over the processes; same shape, dtype and device. ``tensor`` is not changed."""
    if not is_distributed():
        return tensor
    moved = tensor.detach().to(_collective_device(), copy=True).contiguous()
    dist.all_reduce(moved)
    return moved.to(tensor.device)


def all_gather_object(value: Any) -> list[Any]:
    """``value`` of every process, in order of rank. Values are pickled: for small things."""
    if not is_distributed():
        return [value]
    gathered: list[Any] = [None] * get_world_size()
    dist.all_gather_object(gathered, value)
    return gathered


def all_gather_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Concatenate ``tensor`` (n_r, ...) of every process along the first dimension, in order of rank.

    The processes may hold different numbers of rows, none included; the other dimensions must agree.
    """
    if not is_distributed():
        return tensor
    device = _collective_device()
    counts = all_gather_object(tensor.shape[0])
    most = max(counts)
    padded = torch.zeros((most, *tensor.shape[1:]), dtype=tensor.dtype, device=device)
    padded[: tensor.shape[0]] = tensor.detach().to(device)
    gathered = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(gathered, padded)
    return torch.cat([part[:count] for part, count in zip(gathered, counts)]).to(tensor.device)


def broadcast_object(value: Any, source: int = 0) -> Any:
    """``value`` of process ``source``, on every process."""
    if not is_distributed():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=source)
    return box[0]


def broadcast_tensors(tensors: Iterable[torch.Tensor], source: int = 0) -> None:
    """Overwrite ``tensors`` in place with those of process ``source``."""
    if not is_distributed():
        return
    device = _collective_device()
    for tensor in tensors:
        # Contiguous, since the processes may keep their tensors in different memory formats.
        moved = tensor.detach().to(device).contiguous()
        dist.broadcast(moved, src=source)
        if moved.data_ptr() != tensor.data_ptr():
            tensor.data.copy_(moved)
