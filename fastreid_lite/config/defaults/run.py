"""Keys at the top: one run, and the project that it belongs to."""

from __future__ import annotations

from ..node import CfgNode


def add_run_defaults(cfg: CfgNode) -> None:
    # Packages of your own (any number) to import before anything is merged. If one has a function add_config(cfg), it
    # is called with the config, and the keys that it adds are known keys; what it registers can be named by others.
    cfg.PROJECT = CfgNode({"IMPORTS": ()})
    # The folder for checkpoints, logs and results. One folder holds one run.
    cfg.OUTPUT_DIR = "logs/"
    # Draws weights, order and augmentation. -1 draws a seed, which is logged and saved.
    cfg.SEED = -1
    # The same bytes in each run also on a device, by slower kernels; on the CPU this is so in any case.
    cfg.DETERMINISTIC = False
    # Lets cuDNN time its convolutions first: faster where all images have one size, not deterministic.
    cfg.CUDNN_BENCHMARK = False
