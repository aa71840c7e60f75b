#!/usr/bin/env python3
"""The run of ``train_net.py`` as one plain loop, without trainer and hooks: what they do can be read here.

    python tools/plain_train_net.py --config-file configs/Synthetic/quick.yml OUTPUT_DIR output/plain

It takes the same config, and gives the same losses and the same weights. It leaves out what the trainer is for: resume,
several processes, gradient accumulation, AMP, clipping, writers, the best checkpoint.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from fastreid_lite.checkpoint import atomic_torch_save  # noqa: E402
from fastreid_lite.config import load_config  # noqa: E402
from fastreid_lite.config.cli import config_error_exit, parse_args  # noqa: E402
from fastreid_lite.data.build import build_test_loader, build_train_loader  # noqa: E402
from fastreid_lite.engine.defaults import default_setup  # noqa: E402
from fastreid_lite.engine.defaults.from_config import fill_in_classes  # noqa: E402
from fastreid_lite.evaluation import ReidEvaluator, results_table  # noqa: E402
from fastreid_lite.modeling import build_model  # noqa: E402
from fastreid_lite.runtime import get_runtime  # noqa: E402
from fastreid_lite.solver import build_lr_schedule, build_optimizer  # noqa: E402


def train(cfg: Any) -> list[dict[str, float]]:
    """Train as ``cfg`` says; the losses of every step come back, and are in ``metrics.json`` of OUTPUT_DIR."""
    runtime = get_runtime(cfg.MODEL.DEVICE)
    runtime.prepare()
    loader = build_train_loader(cfg, seed=cfg.SEED)
    cfg = fill_in_classes(cfg, loader.num_classes)
    model = runtime.move_module(build_model(cfg))
    optimizer = build_optimizer(cfg, model)
    torch.manual_seed(cfg.SEED)  # for dropout
    epoch_length = len(loader)
    max_iter = cfg.SOLVER.MAX_ITER if cfg.SOLVER.MAX_ITER is not None else cfg.SOLVER.MAX_EPOCH * epoch_length
    schedule = build_lr_schedule(cfg, iters_per_epoch=epoch_length, max_iter=max_iter)

    log: list[dict[str, float]] = []
    model.train()
    while len(log) < max_iter:
        for batch in loader:  # one epoch; the next iteration of the loader is the next epoch
            for group in optimizer.param_groups:
                group["lr"] = schedule.lr(group["base_lr"], len(log))
            losses = model(runtime.move_batch(batch))
            total = torch.stack(list(losses.values())).sum()
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            line = {name: loss.item() for name, loss in losses.items()}
            log.append({"iteration": len(log), "total_loss": total.item(), **line})
            if len(log) % cfg.SOLVER.LOG_PERIOD_ITERS == 0:
                print("  ".join(f"{name} {value:.4g}" for name, value in log[-1].items()))
            if len(log) == max_iter:
                break
    loader.close()
    folder = Path(cfg.OUTPUT_DIR)
    (folder / "metrics.json").write_text("".join(f"{json.dumps(line)}\n" for line in log), encoding="utf-8")
    atomic_torch_save({"model": model.state_dict()}, folder / "model_final.pth")
    print(results_table(evaluate(cfg, model, runtime)))
    return log


def evaluate(cfg: Any, model: torch.nn.Module, runtime: Any) -> dict[str, dict[str, float]]:
    """Rank-1, mAP and the rest, percent, on each of DATASETS.TESTS."""
    model.eval()
    results = {}
    for name in cfg.DATASETS.TESTS:
        loader, query, gallery = build_test_loader(cfg, name)
        evaluator = ReidEvaluator.from_config(cfg, query, gallery)
        with torch.no_grad():
            for batch in loader:
                evaluator.process(batch, model(runtime.move_batch(batch)))
        results[name] = evaluator.evaluate()
    return results


if __name__ == "__main__":
    with config_error_exit():
        arguments = parse_args()
        config = default_setup(load_config(arguments.config_file, arguments.opts))
    train(config)
