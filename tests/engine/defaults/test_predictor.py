from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fastreid_lite.checkpoint import CheckpointError
from fastreid_lite.data.build import build_test_loader
from fastreid_lite.data.images import read_image
from fastreid_lite.engine import DefaultPredictor
from fastreid_lite.modeling import build_model
from tests.toy_run import toy_config, write_toy_market


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> DefaultPredictor:
    root = write_toy_market(tmp_path_factory.mktemp("toy"))
    cfg = toy_config(root, root / "run", TEST__IMS_PER_BATCH=5)
    torch.save({"model": build_model(cfg).state_dict()}, root / "weights.pth")
    return DefaultPredictor(toy_config(root, root / "run", TEST__IMS_PER_BATCH=5, MODEL__WEIGHTS=root / "weights.pth"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("again"))


def test_a_file_gives_the_feature_that_the_evaluation_gives(predictor: DefaultPredictor, root: Path) -> None:
    loader, query, _ = build_test_loader(toy_config(root, root / "run", TEST__IMS_PER_BATCH=5), "Market1501")
    with torch.no_grad():
        wanted = torch.cat([predictor.model(batch) for batch in loader])[: len(query)]
    assert torch.equal(predictor(query.paths[:10]), wanted[:10])
    assert torch.equal(predictor([read_image(path) for path in query.paths[:5]]), wanted[:5])


def test_no_image_gives_no_row(predictor: DefaultPredictor) -> None:
    assert len(predictor([])) == 0


def test_what_is_no_image_is_refused(predictor: DefaultPredictor) -> None:
    with pytest.raises(TypeError, match="expected uint8 RGB"):
        predictor([torch.zeros(3, 4, 4)])
    with pytest.raises(ValueError, match=r"shape \(1, 4, 4\), expected \(3, H, W\)"):
        predictor([torch.zeros(1, 4, 4, dtype=torch.uint8)])


def test_weights_are_needed(root: Path) -> None:
    with pytest.raises(CheckpointError, match="MODEL.WEIGHTS is empty"):
        DefaultPredictor(toy_config(root, root / "run"))
