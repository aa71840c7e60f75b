"""The command ``train_net.py``, also installed as ``fastreid-lite-train``.

What is wrong with flags, options, keys and folders is said before torch is imported.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from fastreid_lite.config import load_config
from fastreid_lite.config.cli import check_weights, config_error_exit, parse_args


def train(argv: Sequence[str] | None = None) -> None:
    """Read the command line, and train or evaluate in as many processes as it asks for."""
    with config_error_exit("train_net.py"):
        args = parse_args(argv)
        cfg = load_config(args.config_file, args.opts)
        check_weights(args, cfg)
        from fastreid_lite.engine.defaults.availability import refuse_unavailable
        from fastreid_lite.engine.defaults.output_dir import check_output_dir

        refuse_unavailable(cfg)
        check_output_dir(cfg, resume=args.resume, eval_only=args.eval_only)
    from fastreid_lite.engine.launch import WorkerError, launch

    try:
        launch(
            run,
            args.num_processes,
            args=(args,),
            num_machines=args.num_machines,
            machine_rank=args.machine_rank,
            dist_url=args.dist_url,
            device=cfg.MODEL.DEVICE,
        )
    except WorkerError as error:
        print(f"train_net.py: error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def run(args: Namespace) -> None:
    """One process of the run."""
    from fastreid_lite.checkpoint import CheckpointError
    from fastreid_lite.engine.defaults.setup import default_setup
    from fastreid_lite.engine.defaults.trainer import DefaultTrainer

    with config_error_exit("train_net.py"):
        cfg = load_config(args.config_file, args.opts)
        cfg = default_setup(cfg, resume=args.resume, eval_only=args.eval_only)
    try:
        if args.eval_only:
            from fastreid_lite.engine.defaults.eval_only import evaluate_weights

            evaluate_weights(cfg, resume=args.resume)
            return
        with config_error_exit("train_net.py"):
            trainer = DefaultTrainer(cfg)
            trainer.resume_or_load(resume=args.resume)
    except (CheckpointError, ValueError, KeyError) as error:
        words = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"train_net.py: error: {words}", file=sys.stderr)
        raise SystemExit(1) from None
    trainer.train()
