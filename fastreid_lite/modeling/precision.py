"""Where half precision is too coarse: losses and cosines are computed in float32 whatever surrounds them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def widened(values: Tensor) -> Tensor:
    """``values`` in float32 where they are in half precision, else as they are (float64 stays float64)."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def autocast_off(values: Tensor) -> AbstractContextManager[object]:
    """No autocast, for operations on the device of ``values``."""
    kind = values.device.type
    if not torch.amp.is_autocast_available(kind):
        return nullcontext()
    return torch.autocast(kind, enabled=False)
