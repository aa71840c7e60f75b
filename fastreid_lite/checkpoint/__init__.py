"""Files that survive a crash, checkpoints that load without running code, weights with clean names."""

from __future__ import annotations

from typing import Any

from fastreid_lite.utils.lazy import exporter

_SUBMODULES = {
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
__all__ = list(_SUBMODULES)
_find = exporter(__name__, _SUBMODULES)


def __getattr__(name: str) -> Any:
    return _find(name)
