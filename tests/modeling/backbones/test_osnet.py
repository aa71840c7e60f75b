from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from fastreid_lite.modeling import build_backbone, build_model
from fastreid_lite.modeling.backbones.osnet import OSNet
from fastreid_lite.modeling.heads.osnet_head import from_osnet_names

OSNET = {"MODEL.BACKBONE.NAME": "build_osnet_backbone", "MODEL.BACKBONE.DEPTH": "x0_25"}


@pytest.mark.parametrize(
    ("depth", "width", "millions"), [("x0_25", 128, 0.2), ("x0_5", 256, 0.6), ("x0_75", 384, 1.3), ("x1_0", 512, 2.2)]
)
def test_width_and_size_are_those_of_the_paper(depth: str, width: int, millions: float) -> None:
    backbone = OSNet(depth)
    assert backbone.feat_dim == width
    # The paper counts the fully connected layer and its norm too.
    parameters = sum(p.numel() for p in backbone.parameters()) + 512 * (width + 3)
    assert round(parameters / 1e6, 1) == millions
    assert backbone(torch.randn(2, 3, 64, 32)).shape == (2, width, 4, 2)


def test_the_weights_of_its_authors_give_their_features(shared_data: Path, make_cfg: Callable[..., Any]) -> None:
    state = torch.load(shared_data / "weights/osnet_x0_25_market1501.pth", weights_only=True)
    known = np.load(shared_data / "weights/osnet_x0_25_market1501_features.npz")
    model = build_model(make_cfg({**OSNET, "MODEL.HEADS.NAME": "OSNetHead", "MODEL.HEADS.NUM_CLASSES": 751}))
    model.load_state_dict(from_osnet_names(state))
    images = []
    for name in known["names"]:
        with Image.open(shared_data / "Market-1501-v15.09.15/query" / str(name)) as image:
            resized = image.convert("RGB").resize((128, 256), Image.Resampling.BILINEAR)
        images.append(torch.from_numpy(np.array(resized)).permute(2, 0, 1))
    with torch.no_grad():
        features = model.eval()(torch.stack(images))
    assert np.abs(features.numpy() - known["features"]).max() < 1e-4


def test_the_weights_of_its_authors_load_as_a_start(
    shared_data: Path, make_cfg: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    path = str(shared_data / "weights/osnet_x0_25_market1501.pth")
    changes = {**OSNET, "MODEL.BACKBONE.PRETRAIN": True, "MODEL.BACKBONE.PRETRAIN_PATH": path}
    with caplog.at_level("INFO"):
        backbone = build_backbone(make_cfg(changes))
    count = len(backbone.state_dict())
    assert f"{count} of {count} tensors read" in caplog.text
    assert "9 tensors of" in caplog.text and "fc.0.weight" in caplog.text


def test_weights_of_another_width_are_refused_by_the_first_name(
    shared_data: Path, make_cfg: Callable[..., Any]
) -> None:
    path = str(shared_data / "weights/osnet_x0_25_market1501.pth")
    changes = {**OSNET, "MODEL.BACKBONE.PRETRAIN": True, "MODEL.BACKBONE.PRETRAIN_PATH": path}
    with pytest.raises(ValueError, match=r"'conv1.conv.weight' .* has shape \(16, 3, 7, 7\).*\(32, 3, 7, 7\)"):
        build_backbone(make_cfg({**changes, "MODEL.BACKBONE.DEPTH": "x0_5"}))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"DEPTH": "50x"}, KeyError, r"unknown depth of build_osnet_backbone '50x'.*Known: x0_25"),
        ({"WITH_IBN": True}, ValueError, "WITH_IBN is True, but build_osnet_backbone has no such variant"),
        ({"PRETRAIN": True}, FileNotFoundError, "timm has no weights of OSNet: set MODEL.BACKBONE.PRETRAIN_PATH"),
    ],
)
def test_a_setting_without_meaning_is_refused(
    make_cfg: Callable[..., Any], changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_backbone(make_cfg({**OSNET, **{f"MODEL.BACKBONE.{key}": value for key, value in changes.items()}}))
