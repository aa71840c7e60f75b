"""Files that survive a crash, checkpoints that load without running code, weights with clean names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SUBMODULE_OF = {
    "BEST_NAME": "names",
    "CheckpointError": "errors",
    "Checkpointer": "checkpointer",
    "FINAL_NAME": "names",
    "KEY_TABLES": "keys",
    "KeyTable": "keys",
    "LoadReport": "report",
    "POINTER_NAME": "names",
    "ResumeChoice": "resume",
    "atomic_path": "files",
    "atomic_torch_save": "files",
    "atomic_write_bytes": "files",
    "atomic_write_text": "files",
    "clean_state_dict": "wrappers",
    "load_checkpoint": "loading",
    "load_strict": "weights",
    "load_weights": "weights",
    "periodic_name": "names",
    "to_plain": "plain",
    "unwrap_model": "wrappers",
    "weights_of": "weights",
}

__all__ = sorted(_SUBMODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SUBMODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
