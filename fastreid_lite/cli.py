"""The command ``train_net.py``, also installed as ``fastreid-lite-train``.

What is wrong with flags, options, keys and folders is said before torch is imported.
"""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastreid_lite.config import load_config
from fastreid_lite.config.cli import check_weights, config_error_exit, parse_args

if TYPE_CHECKING:
    from fastreid_lite.engine.defaults.trainer import DefaultTrainer


def train(argv: Sequence[str] | None = None, *, trainer: type[DefaultTrainer] | None = None) -> None:
    """Read the command line, and train or evaluate in as many processes as it asks for.

    Args:
        argv: the words after the program's name; None takes those of this process.
        trainer: a subclass of DefaultTrainer that does the training, at the top level of a module, since every process
            imports it; None for DefaultTrainer itself.
    """
    with config_error_exit():
        args = parse_args(argv)
        cfg = load_config(args.config_file, args.opts)
        check_weights(args, cfg)
        from fastreid_lite.engine.defaults.availability import refuse_unavailable
        from fastreid_lite.engine.defaults.output_dir import check_output_dir

        refuse_unavailable(cfg)
        check_output_dir(cfg, resume=args.resume, eval_only=args.eval_only)
    from fastreid_lite.engine.launch import LaunchError, WorkerError, launch, quiet_interrupt
    from fastreid_lite.runtime import get_runtime

    with _one_line(KeyError, ValueError):
        get_runtime(cfg.MODEL.DEVICE)
    with quiet_interrupt(), _one_line(WorkerError, LaunchError):
        launch(
            run,
            args.num_processes,
            args=(args, trainer),
            num_machines=args.num_machines,
            machine_rank=args.machine_rank,
            dist_url=args.dist_url,
            device=cfg.MODEL.DEVICE,
        )


def run(args: Namespace, trainer_class: type[DefaultTrainer] | None = None) -> None:
    """One process of the run."""
    from fastreid_lite.checkpoint import CheckpointError
    from fastreid_lite.data.fetching import WorkerDiedError
    from fastreid_lite.data.images import ImageReadError
    from fastreid_lite.engine import NonFiniteError
    from fastreid_lite.engine.defaults.setup import default_setup

    with config_error_exit(), _one_line(CheckpointError, ValueError, KeyError, OSError):
        cfg = load_config(args.config_file, args.opts)
        cfg = default_setup(cfg, resume=args.resume, eval_only=args.eval_only)
        if args.eval_only:
            from fastreid_lite.engine.defaults.eval_only import evaluate_weights

            evaluate_weights(cfg, resume=args.resume)
            return
        from fastreid_lite.engine.defaults.trainer import DefaultTrainer

        trainer = (trainer_class or DefaultTrainer)(cfg)
        trainer.resume_or_load(resume=args.resume)
    with _one_line(NonFiniteError, ImageReadError, WorkerDiedError):
        trainer.train()


@contextmanager
def _one_line(*errors: type[Exception]) -> Iterator[None]:
    """Turn ``errors`` in the block, whose words say what is wrong, into one line on stderr and exit status 1."""
    from fastreid_lite.config import ConfigError

    try:
        yield
    except ConfigError:
        raise
    except errors as error:
        words = error.args[0] if isinstance(error, KeyError) and error.args else error
        logging.getLogger(__name__).error(f"{type(error).__name__}: {words}")
        print(f"{Path(sys.argv[0]).name}: error: {words}", file=sys.stderr)
        raise SystemExit(1) from None
