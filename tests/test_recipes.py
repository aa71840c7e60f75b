"""Every recipe in configs/: it loads, its model builds, and one step of it moves what it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from fastreid_lite.config import load_config
from fastreid_lite.data.build import build_train_loader
from fastreid_lite.modeling import build_model
from fastreid_lite.solver import build_optimizer
from tests.toy_run import ROOT, run_tool, write_toy_market

RECIPES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "configs").rglob("*.yml"))

NECK = {"heads.bottleneck.0.bias": "the BNNeck's bias is frozen at zero"}
# timm begins the last norm of each residual branch at zero, so nothing before it has a gradient in the first step.
BRANCHES = {
    f"backbone.network.layer{stage}.0.{name}": "behind a norm that begins at zero"
    for stage in range(1, 5)
    for name in ("conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight")
}
BOTTLENECK = {
    f"backbone.network.layer3.0.{name}": "behind a norm that begins at zero"
    for name in ("bn2.weight", "bn2.bias", "conv3.weight")
}
# Parameters that rightly stay where they are in a first step, and why, by recipe.
STILL: dict[str, dict[str, str]] = {"configs/Synthetic/quick.yml": {**NECK, **BRANCHES, **BOTTLENECK}}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"), identities=4, images=4)


def small(recipe: str, market: Path) -> Any:
    """The recipe on the toy set: small images, one small batch, nothing loaded from elsewhere, float32."""
    options = {
        "DATASETS.ROOT": str(market),
        "DATASETS.NAMES": "[Market1501]",
        "DATASETS.TESTS": "[Market1501]",
        "DATALOADER.NUM_WORKERS": "0",
        "DATALOADER.NUM_INSTANCE": "2",
        "INPUT.SIZE_TRAIN": "[64, 32]",
        "MODEL.BACKBONE.PRETRAIN": "False",
        "MODEL.HEADS.NUM_CLASSES": "4",
        "SOLVER.IMS_PER_BATCH": "4",
        "SOLVER.FREEZE_ITERS": "0",
        "SOLVER.AMP.ENABLED": "False",
    }
    return load_config(ROOT / recipe, [word for pair in options.items() for word in pair])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_short(recipe: str) -> None:
    assert len((ROOT / recipe).read_text().splitlines()) < 30


@pytest.mark.parametrize("recipe", RECIPES)
def test_one_step_moves_every_parameter_that_has_a_gradient(recipe: str, market: Path) -> None:
    cfg = small(recipe, market)
    torch.manual_seed(0)
    model = build_model(cfg).train()
    optimizer = build_optimizer(cfg, model)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    batch = next(iter(build_train_loader(cfg, seed=1)))
    losses = model(batch)
    torch.stack(list(losses.values())).sum().backward()
    with_gradient = {
        name for name, parameter in model.named_parameters() if parameter.grad is not None and parameter.grad.any()
    }
    optimizer.step()
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert with_gradient <= moved
    still = set(before) - with_gradient
    assert still == set(STILL.get(recipe, NECK)), "explain in STILL what no gradient reaches, or mend the model"


def test_an_image_folder_of_faces_without_cameras_trains_and_evaluates(tmp_path: Path) -> None:
    from fastreid_lite.engine.defaults import DefaultTrainer, default_setup
    from fastreid_lite.utils.logger import close_logger
    from tests.toy_run import toy_config

    random = np.random.default_rng(0)
    for person in range(8):
        folder = tmp_path / "faces" / f"s{person}"
        folder.mkdir(parents=True)
        for number in range(4):
            Image.fromarray(random.integers(0, 256, (20, 16), dtype=np.uint8)).save(folder / f"{number}.pgm")
    name = f"[ImageFolderReID:{tmp_path / 'faces'}]"
    more = {"DATASETS__NAMES": name, "DATASETS__TESTS": name, "SOLVER__MAX_ITER": 2, "TEST__EVAL_PERIOD_ITERS": 0}
    trainer = DefaultTrainer(default_setup(toy_config(tmp_path, tmp_path / "run", **more)))
    trainer.resume_or_load(False)
    results = trainer.train()
    close_logger()
    assert 0 < results[name[1:-1]]["mAP"] <= 100


SHARED = ROOT.parent / "shared" / "data"


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the small real image sets beside the project are not here")
@pytest.mark.parametrize(
    ("name", "steps"), [("Market1501", 60), (f"ImageFolderReID:{SHARED / 'orl_faces'}", 60)], ids=["market", "faces"]
)
def test_the_quick_recipe_learns_on_real_images(name: str, steps: int, tmp_path: Path) -> None:
    from fastreid_lite.engine.defaults import DefaultTrainer, default_setup
    from fastreid_lite.utils.logger import close_logger

    options = {
        "DATASETS.ROOT": str(SHARED),
        "DATASETS.NAMES": f"[{name}]",
        "DATASETS.TESTS": f"[{name}]",
        "OUTPUT_DIR": str(tmp_path),
        "SOLVER.MAX_ITER": str(steps),
        "SOLVER.IMS_PER_BATCH": "32",
        "INPUT.SIZE_TRAIN": "[64, 32]",
        "INPUT.SIZE_TEST": "[64, 32]",
        "TEST.EVAL_PERIOD_ITERS": "0",
    }
    cfg = load_config(ROOT / "configs/Synthetic/quick.yml", [word for pair in options.items() for word in pair])
    trainer = DefaultTrainer(default_setup(cfg))
    trainer.resume_or_load(False)
    untrained = trainer.evaluate()[name]["mAP"]
    trained = trainer.train()[name]["mAP"]
    close_logger()
    assert trained > untrained + 2


@pytest.mark.slow
def test_an_untrained_network_does_not_solve_the_rendered_task(tmp_path: Path) -> None:
    from fastreid_lite.engine.defaults import DefaultTrainer

    options = ["DATASETS.ROOT", str(tmp_path), "DATASETS.SYNTHETIC.TRAIN_IDS", "4", "MODEL.HEADS.NUM_CLASSES", "4"]
    cfg = load_config(ROOT / "configs/Synthetic/quick.yml", options)
    torch.manual_seed(0)
    assert DefaultTrainer.test(cfg, build_model(cfg))["SyntheticReID"]["mAP"] < 25


@pytest.mark.slow
def test_the_quick_recipe_as_it_is_gets_above_85_map_and_better_with_each_evaluation(tmp_path: Path) -> None:
    words = ["--config-file", str(ROOT / "configs/Synthetic/quick.yml")]
    words += ["DATASETS.ROOT", str(tmp_path / "data"), "OUTPUT_DIR", str(tmp_path / "run")]
    done = run_tool("train_net.py", *words, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.json").read_text().splitlines()]
    curve = [line["SyntheticReID/mAP"] for line in lines if "SyntheticReID/mAP" in line]
    assert len(curve) == 4 and curve == sorted(set(curve)), curve
    assert curve[-1] > 85, curve
