"""The global random generators as plain data, so that a checkpoint can hold them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def random_state() -> dict[str, Any]:
    """The states of Python's, numpy's and torch's global generators, those of accelerators included."""
    kind, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    state: dict[str, Any] = {
        "python": [kind, list(numbers), gauss],
        "numpy": [
            str(name),
            torch.from_numpy(np.asarray(keys, dtype=np.int64)),
            int(position),
            int(has_gauss),
            float(cached),
        ],
        "torch": torch.get_rng_state(),
    }
    accelerator = _accelerator()
    if accelerator is not None:
        state["accelerator"] = accelerator.get_rng_state()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Put the generators back to where :func:`random_state` found them."""
    kind, numbers, gauss = state["python"]
    random.setstate((kind, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    accelerator = _accelerator()
    if accelerator is not None and "accelerator" in state:
        accelerator.set_rng_state(state["accelerator"])


@contextmanager
def kept_random_state() -> Iterator[None]:
    """The block may draw from the global generators; afterwards they stand where they stood, however it ends."""
    state = random_state()
    try:
        yield
    finally:
        set_random_state(state)


def _accelerator() -> Any:
    """The module of torch that drives this machine's accelerator (``torch.cuda`` or its like); None without one."""
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return None if device is None else torch.get_device_module(device)
