"""The first lines of a run: folder, log, seed, where it computes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fastreid_lite.checkpoint.files import atomic_write_text
from fastreid_lite.engine.defaults.availability import refuse_unavailable, warn_without_effect
from fastreid_lite.engine.defaults.output_dir import check_output_dir, hold_output_dir
from fastreid_lite.runtime import get_runtime
from fastreid_lite.utils import comm
from fastreid_lite.utils.env import collect_env, resolve_seed, seed_everything, set_deterministic
from fastreid_lite.utils.logger import setup_logger

logger = logging.getLogger(__name__)


def default_setup(cfg: Any, *, resume: bool | str = False, eval_only: bool = False) -> Any:
    """Prepare this process for a run. Collective: every process calls it.

    Makes OUTPUT_DIR, begins ``log.txt``, writes ``config.yaml`` (not for an evaluation, which may look at a run's
    folder), draws SEED where it is -1, and seeds the generators that initialise weights.

    Args:
        cfg: as loaded; it is not changed.
        resume: what --resume was given.
        eval_only: nothing is trained.

    Returns:
        A frozen copy of ``cfg`` with the seed in force.

    Raises:
        ConfigValueError: OUTPUT_DIR cannot be used, or the config asks for what is not available.
    """
    refuse_unavailable(cfg)
    cfg = cfg.clone()
    cfg.defrost()
    cfg.SEED = comm.broadcast_object(resolve_seed(cfg.SEED))
    cfg.freeze()
    rank = comm.get_rank()
    _on_main_first(lambda: _take_output_dir(cfg, resume=resume, eval_only=eval_only))
    folder = Path(cfg.OUTPUT_DIR).expanduser()
    setup_logger(folder, rank=rank)
    logger.info(f"{collect_env()}\nprocesses: {comm.get_world_size()}, seed {cfg.SEED}")
    for sentence in warn_without_effect(cfg):
        logger.warning(sentence)
    if rank == 0 and not eval_only:
        atomic_write_text(folder / "config.yaml", cfg.dump())
    get_runtime(cfg.MODEL.DEVICE).prepare()
    if cfg.DETERMINISTIC and cfg.CUDNN_BENCHMARK:
        logger.warning("CUDNN_BENCHMARK True takes no effect: DETERMINISTIC True is in force")
    set_deterministic(cfg.DETERMINISTIC, cudnn_benchmark=cfg.CUDNN_BENCHMARK and not cfg.DETERMINISTIC)
    seed_everything(cfg.SEED)
    return cfg


def _take_output_dir(cfg: Any, *, resume: bool | str, eval_only: bool) -> None:
    folder = check_output_dir(cfg, resume=resume, eval_only=eval_only)
    if not eval_only:
        hold_output_dir(folder)


def _on_main_first(check: Any) -> None:
    """Run ``check`` on rank 0; its error is raised on every process."""
    error: Exception | None = None
    if comm.is_main_process():
        try:
            check()
        except Exception as caught:
            error = caught
    error = comm.broadcast_object(error)
    if error is not None:
        raise error
