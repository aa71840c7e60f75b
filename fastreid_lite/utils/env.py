"""The process: seeds, determinism, and what it runs on."""

from __future__ import annotations

import os
import platform
import random
import secrets
import sys
from importlib import metadata

import numpy as np
import torch


def resolve_seed(seed: int) -> int:
    """``seed`` itself, or a drawn one in [0, 2**31) where it is negative.

    >>> resolve_seed(7)
    7
    """
    return seed if seed >= 0 else secrets.randbelow(2**31)


def seed_everything(seed: int, rank: int = 0) -> None:
    """Seed the global generators of Python, numpy and torch with ``seed + rank``.

    They serve initialisation and dropout only; data order and augmentation have generators of their own. A model must
    be built with the same numbers on every process, or be broadcast afterwards.
    """
    number = (seed + rank) % 2**32
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def set_deterministic(enabled: bool, *, cudnn_benchmark: bool = False) -> None:
    """Ask torch for algorithms that give the same bytes in every run; slower on some devices.

    Raises:
        ValueError: both ``enabled`` and ``cudnn_benchmark``, which contradict each other.
    """
    if enabled and cudnn_benchmark:
        raise ValueError("DETERMINISTIC True and CUDNN_BENCHMARK True contradict each other: set one of them to False")
    if enabled:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # The call imports torch's compiler, which takes seconds that a run without it should not pay.
    if enabled or torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(enabled, warn_only=True)
    torch.backends.cudnn.benchmark = cudnn_benchmark


def versions() -> dict[str, str]:
    """Versions that a bit-exact resume depends on, by name."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": str(np.__version__)}
    for package in ("torchvision", "timm", "pillow"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def collect_env() -> str:
    """A few lines for the log: where this runs and with what."""
    rows = [f"{name} {version}" for name, version in versions().items()]
    rows.append(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, {torch.get_num_threads()} threads")
    rows.append(f"command: {' '.join(sys.argv)}")
    return "\n".join(rows)
