"""Small readings of the config that a run is put together from."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fastreid_lite.config.errors import ConfigValueError
from fastreid_lite.engine.clipping import GradientClipper
from fastreid_lite.runtime import Runtime, get_runtime
from fastreid_lite.utils import comm


def build_clipper(cfg: Any) -> GradientClipper | None:
    """What limits gradients; None where SOLVER.CLIP_GRADIENTS is off."""
    clip = cfg.SOLVER.CLIP_GRADIENTS
    if not clip.ENABLED:
        return None
    return GradientClipper(clip.CLIP_TYPE, clip.CLIP_VALUE, norm_type=clip.NORM_TYPE, scope=clip.SCOPE)


def period(section: Any, key: str) -> int | tuple[float, str]:
    """The period that ``key`` (in epochs) or its twin in iterations gives, as hooks take it."""
    in_iterations = section[f"{key}_ITERS"]
    return in_iterations if in_iterations is not None else (section[key], "epoch")


def fill_in_classes(cfg: Any, found: int) -> Any:
    """``cfg`` with MODEL.HEADS.NUM_CLASSES: what the training set has where it is 0.

    Raises:
        ConfigValueError: it is smaller than the number of training identities.
    """
    given = cfg.MODEL.HEADS.NUM_CLASSES
    if given == 0:
        return with_value(cfg, "MODEL.HEADS.NUM_CLASSES", found)
    if given < found:
        raise ConfigValueError(
            f"MODEL.HEADS.NUM_CLASSES is {given}, but the training set has {found} identities (labels 0 to "
            f"{found - 1}): set it to 0 to take their number, or to at least {found}"
        )
    return cfg


def wrap_for_processes(model: nn.Module, runtime: Runtime) -> nn.Module:
    """``model`` in DistributedDataParallel where there are several processes."""
    if not comm.is_distributed():
        return model
    index = runtime.device.index
    return DistributedDataParallel(model, device_ids=None if index is None else [index])


def never_evaluates(cfg: Any) -> bool:
    """True where the period of evaluation is negative: not even at the end."""
    count = period(cfg.TEST, "EVAL_PERIOD")
    return (count[0] if isinstance(count, tuple) else count) < 0


def processes(cfg: Any) -> dict[str, Any]:
    """What a loader is told of processes and device: its rank, their number, and whether to pin its batches."""
    pins = get_runtime(cfg.MODEL.DEVICE).pins
    return {"rank": comm.get_rank(), "world_size": comm.get_world_size(), "pin_memory": pins}


def without_pretrained(cfg: Any) -> Any:
    """``cfg`` for a model whose weights are loaded afterwards: it needs no ImageNet weights first."""
    return with_value(cfg, "MODEL.BACKBONE.PRETRAIN", False)


def with_value(cfg: Any, key: str, value: Any) -> Any:
    """A frozen copy of ``cfg`` in which ``key`` ("A.B.C") is ``value``."""
    changed = cfg.clone()
    changed.defrost()
    section, _, leaf = key.rpartition(".")
    node = changed
    for part in section.split(".") if section else []:
        node = node[part]
    node[leaf] = value
    changed.freeze()
    return changed
