#!/usr/bin/env python3
"""The run of ``train_net.py`` as one plain loop, without trainer and hooks: what they do can be read here.

    python tools/plain_train_net.py --config-file configs/Synthetic/quick.yml OUTPUT_DIR output/plain

It takes the same config, and gives the same losses and the same weights. It leaves out what the trainer is for. What
would change the run is refused: --resume, --eval-only, several processes or machines, AMP, gradient accumulation,
clipping, MODEL.WEIGHTS. What only watches it is left out: periodic evaluation and checkpoints, the best model, writers,
signals, the guard against losses that are not finite.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from fastreid_lite.checkpoint import atomic_torch_save  # noqa: E402
from fastreid_lite.config import ConfigError, ConfigValueError, load_config  # noqa: E402
from fastreid_lite.config.cli import config_error_exit, parse_args  # noqa: E402
from fastreid_lite.data.build import build_test_loader, build_train_loader  # noqa: E402
from fastreid_lite.engine.defaults import default_setup  # noqa: E402
from fastreid_lite.engine.defaults.from_config import fill_in_classes  # noqa: E402
from fastreid_lite.evaluation import ReidEvaluator, results_table  # noqa: E402
from fastreid_lite.modeling import build_model  # noqa: E402
from fastreid_lite.runtime import get_runtime  # noqa: E402
from fastreid_lite.solver import build_lr_schedule, build_optimizer  # noqa: E402


class PlainRun:
    """All that a run consists of: data, model, optimizer, schedule."""

    def __init__(self, cfg: Any) -> None:
        self.runtime = get_runtime(cfg.MODEL.DEVICE)
        self.loader = build_train_loader(cfg, seed=cfg.SEED)
        self.cfg = cfg = fill_in_classes(cfg, self.loader.num_classes)
        self.model = self.runtime.move_module(build_model(cfg))
        self.optimizer = build_optimizer(cfg, self.model)
        epoch_length, solver = len(self.loader), cfg.SOLVER
        self.max_iter = solver.MAX_ITER if solver.MAX_ITER is not None else solver.MAX_EPOCH * epoch_length
        self.schedule = build_lr_schedule(cfg, iters_per_epoch=epoch_length, max_iter=self.max_iter)
        self.test_sets = {name: build_test_loader(cfg, name) for name in cfg.DATASETS.TESTS}
        torch.manual_seed(cfg.SEED)  # for dropout

    def train(self) -> list[dict[str, float]]:
        """Train to the end; the losses of every step come back."""
        log: list[dict[str, float]] = []
        self.model.train()
        while len(log) < self.max_iter:
            for batch in self.loader:  # one epoch; the next iteration of the loader is the next epoch
                for group in self.optimizer.param_groups:
                    group["lr"] = self.schedule.lr(group["base_lr"], len(log))
                losses = self.model(self.runtime.move_batch(batch))
                total = torch.stack(list(losses.values())).sum()
                self.optimizer.zero_grad()
                total.backward()
                self.optimizer.step()
                line = {name: loss.item() for name, loss in losses.items()}
                log.append({"iteration": len(log), "total_loss": total.item(), **line})
                if len(log) % self.cfg.SOLVER.LOG_PERIOD_ITERS == 0:
                    print("  ".join(f"{name} {value:.4g}" for name, value in log[-1].items()))
                if len(log) == self.max_iter:
                    break
        self.loader.close()
        return log

    def evaluate(self) -> dict[str, dict[str, float]]:
        """Rank-1, mAP and the rest, percent, on each of DATASETS.TESTS."""
        self.model.eval()
        results = {}
        for name, (loader, query, gallery) in self.test_sets.items():
            evaluator = ReidEvaluator.from_config(self.cfg, query, gallery)
            with torch.no_grad():
                for batch in loader:
                    evaluator.process(batch, self.model(self.runtime.move_batch(batch)))
            results[name] = evaluator.evaluate()
        return results


def refuse(args: Namespace, cfg: Any) -> None:
    """Refuse what this loop does not do, before anything is built or written.

    Raises:
        ConfigValueError: naming each such flag and key.
    """
    solver = cfg.SOLVER
    wrong = [
        ("--resume", bool(args.resume)),
        ("--eval-only", args.eval_only),
        (f"--num-processes {args.num_processes}", args.num_processes > 1),
        (f"--num-machines {args.num_machines}", args.num_machines > 1),
        ("torchrun with several processes", int(os.environ.get("WORLD_SIZE", "1")) > 1),
        ("SOLVER.AMP.ENABLED True", solver.AMP.ENABLED),
        (f"SOLVER.ACCUMULATE_STEPS {solver.ACCUMULATE_STEPS}", solver.ACCUMULATE_STEPS > 1),
        ("SOLVER.CLIP_GRADIENTS.ENABLED True", solver.CLIP_GRADIENTS.ENABLED),
        (f"MODEL.WEIGHTS {cfg.MODEL.WEIGHTS}", bool(cfg.MODEL.WEIGHTS)),
    ]
    asked = [name for name, found in wrong if found]
    if asked:
        raise ConfigValueError(
            f"the plain loop does not do {', '.join(asked)}: leave it out or switch it off, or use tools/train_net.py"
        )


@contextmanager
def one_line_exit() -> Iterator[None]:
    """Turn an error in the block, whose words say what is wrong, into one line on stderr and exit status 1."""
    try:
        yield
    except ConfigError:
        raise
    except (ValueError, KeyError, OSError) as error:
        words = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"{Path(sys.argv[0]).name}: error: {words}", file=sys.stderr)
        raise SystemExit(1) from None


def main() -> None:
    """Build, train, save, evaluate."""
    with config_error_exit(), one_line_exit():
        args = parse_args()
        cfg = load_config(args.config_file, args.opts)
        refuse(args, cfg)
        cfg = default_setup(cfg)
        run = PlainRun(cfg)
    log = run.train()
    folder = Path(cfg.OUTPUT_DIR).expanduser()
    (folder / "metrics.json").write_text("".join(f"{json.dumps(line)}\n" for line in log), encoding="utf-8")
    atomic_torch_save({"model": run.model.state_dict()}, folder / "model_final.pth")
    print(results_table(run.evaluate()))


if __name__ == "__main__":
    main()
