"""A project outside the library adds keys, a loss, a dataset and a hook."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from fastreid_lite.config import ConfigKeyError, load_config
from fastreid_lite.data.build import build_train_loader
from fastreid_lite.modeling import build_model

Example = Callable[[str], ModuleType]
ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "examples/my_paper/config.yml"
SCRIPT = ROOT / "examples/my_paper/train.py"


def tiny(folder: Path) -> list[str]:
    """Options that make of the config a run of seconds, on images rendered into ``folder``."""
    rendered = [
        "TRAIN_IDS=6",
        "TEST_IDS=2",
        "CAMERAS=2",
        "IMAGES_PER_CAMERA=2",
        "DISTRACTORS=0",
        "JUNK=0",
        "SIZE=[64,32]",
    ]
    return [
        *(f"DATASETS.SYNTHETIC.{option}" for option in rendered),
        f"DATASETS.SYNTHETIC.FOLDER={folder}",
        "INPUT.SIZE_TRAIN=[64,32]",
        "INPUT.SIZE_TEST=[64,32]",
        "DATALOADER.NUM_WORKERS=0",
        "SOLVER.IMS_PER_BATCH=8",
        "SOLVER.MAX_ITER=4",
        "SOLVER.LOG_PERIOD_ITERS=1",
        "PAPER.RAMP_ITERS=2",
    ]


def test_the_project_trains_with_its_loss_dataset_hook_and_keys(tmp_path: Path) -> None:
    command = [sys.executable, "examples/my_paper/train.py", "--config-file", str(CONFIG), f"OUTPUT_DIR={tmp_path}/run"]
    done = subprocess.run(
        [*command, *tiny(tmp_path / "images")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "12 of 24 training images kept, 2 of each identity at most" in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.json").read_text().splitlines()]
    steps = {line["iteration"]: line for line in lines if "loss_ring" in line}
    assert [steps[step]["ring_weight"] for step in range(4)] == [0, 0.005, 0.01, 0.01]
    assert steps[0]["loss_ring"] == 0 < steps[3]["loss_ring"]
    results = json.loads((tmp_path / "run/results.json").read_text())
    assert results["outcome"] == "finished" and "mAP" in results["results"]["SyntheticReID"]
    weights = torch.load(tmp_path / "run/model_final.pth", weights_only=True)["model"]
    radius = next(value for name, value in weights.items() if name.endswith("radius"))
    assert radius != 1.0


def test_the_script_of_the_project_has_the_flags_of_train_net(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(SCRIPT),
        "--config-file",
        str(CONFIG),
        "--eval-only",
        "OUTPUT_DIR",
        str(tmp_path / "x"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--eval-only has nothing to evaluate" in done.stderr


def test_the_config_alone_brings_loss_dataset_and_keys(example: Example, tmp_path: Path) -> None:
    cfg = load_config(CONFIG, [*tiny(tmp_path), "PAPER.SHOTS", "3", "MODEL.HEADS.NUM_CLASSES", "6"])
    assert (cfg.PAPER.SHOTS, cfg.PAPER.RING.RADIUS) == (3, 1.0)
    loader = build_train_loader(cfg, seed=0)
    assert loader.num_classes == 6
    losses = build_model(cfg).train()(next(iter(loader)))
    assert losses["loss_ring"].requires_grad
    with pytest.raises(ConfigKeyError, match="unknown key PAPER.SHOT .*; did you mean PAPER.SHOTS"):
        load_config(CONFIG, ["PAPER.SHOT", "3"])


def test_the_ring_loss_is_equation_2(example: Example) -> None:
    loss = example("my_paper").RingLoss(weight=0.5, radius=2.0)
    features = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    expected = 0.5 / 2 * ((5 - 2) ** 2 + (1 - 2) ** 2) / 2
    assert loss({"features": features}, torch.tensor([0, 1]))["loss_ring"].item() == pytest.approx(expected)


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("RingLoss", {"radius": 0.0}, "PAPER.RING has WEIGHT 0.01 and RADIUS 0.0, expected >= 0 and > 0"),
    ("FewShotReID", {"root": Path(), "base": None, "shots": 0}, "PAPER.SHOTS is 0, expected at least 1 image"),
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(
    example: Example, name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(example("my_paper"), name)(**arguments)
