"""A Market-style set of noise, and a config that trains on it in a second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = ROOT / "tests" / "projects"


def write_toy_market(root: Path, *, identities: int = 6, images: int = 4, one_camera: bool = False) -> Path:
    """6 identities x 4 images x 2 cameras of 16x8 noise, in Market-1501's layout; half of them to train on."""
    folder = root / "Market-1501-v15.09.15"
    random = np.random.default_rng(0)
    for pid in range(1, 2 * identities + 1):
        for camera in (1, 2):
            for number in range(images):
                part = "bounding_box_train" if pid <= identities else "query" if number == 0 else "bounding_box_test"
                (folder / part).mkdir(parents=True, exist_ok=True)
                shown = 1 if one_camera else camera
                name = f"{pid:04d}_c{shown}s{camera}_{number:06d}_00.jpg"
                Image.fromarray(random.integers(0, 256, (16, 8, 3), dtype=np.uint8)).save(folder / part / name)
    return root


def toy_opts(root: Path, output: Path, **more: Any) -> list[str]:
    """Options of a run on the toy set: 6 identities, batches of 8, 6 steps to an epoch; ``A__B=1`` adds A.B 1."""
    options = {
        "PROJECT.IMPORTS": "[tiny_project]",
        "MODEL.BACKBONE.NAME": "build_tiny_backbone",
        "MODEL.HEADS.WITH_BNNECK": "True",
        "MODEL.LOSSES.NAME": "[CrossEntropyLoss, TripletLoss]",
        "MODEL.LOSSES.TRI.HARD_MINING": "True",
        "MODEL.DEVICE": "cpu",
        "INPUT.SIZE_TRAIN": "[16, 8]",
        "INPUT.SIZE_TEST": "[16, 8]",
        "INPUT.REA.ENABLED": "True",
        "INPUT.FLIP.ENABLED": "True",
        "DATASETS.ROOT": str(root),
        "DATALOADER.NUM_WORKERS": "0",
        "DATALOADER.SAMPLER_TRAIN": "NaiveIdentitySampler",
        "DATALOADER.NUM_INSTANCE": "2",
        "SOLVER.IMS_PER_BATCH": "8",
        "SOLVER.MAX_ITER": "10",
        "SOLVER.WARMUP_ITERS": "4",
        "SOLVER.CHECKPOINT_PERIOD_ITERS": "5",
        "SOLVER.LOG_PERIOD_ITERS": "3",
        "TEST.EVAL_PERIOD_ITERS": "5",
        "SEED": "1",
        "OUTPUT_DIR": str(output),
    }
    options.update({key.replace("__", "."): str(value) for key, value in more.items()})
    return [word for pair in options.items() for word in pair]


def toy_config(root: Path, output: Path, **more: Any) -> Any:
    """The config of a run on the toy set, for this process."""
    from fastreid_lite.config import load_config

    return load_config(None, toy_opts(root, output, **more), search_path=[PROJECTS])


def environment(**more: str) -> dict[str, str]:
    """The environment of a subprocess: one thread, the toy project importable."""
    path = os.pathsep.join([str(PROJECTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def run_tool(tool: str, *words: str, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
    """``python tools/TOOL WORDS...``, its output captured."""
    command = [sys.executable, str(ROOT / "tools" / tool), *words]
    return subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=timeout)
