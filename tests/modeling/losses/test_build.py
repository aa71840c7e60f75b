from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fastreid_lite.modeling import LOSS_REGISTRY, build_losses


def test_all_losses_are_built_with_their_settings(make_cfg: Callable[..., Any]) -> None:
    names = ["CrossEntropyLoss", "TripletLoss", "CircleLoss", "Cosface"]
    losses = build_losses(make_cfg({"MODEL.LOSSES.NAME": names, "MODEL.LOSSES.TRI.MARGIN": 0.7}))
    assert [type(loss).__name__ for loss in losses] == names
    assert vars(losses[1])["margin"] == 0.7


def test_one_name_may_stand_alone(make_cfg: Callable[..., Any]) -> None:
    assert len(build_losses(make_cfg({"MODEL.LOSSES.NAME": "TripletLoss"}))) == 1


def test_a_loss_from_outside_is_found_by_its_name(
    make_cfg: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOSS_REGISTRY, "_entries", dict(LOSS_REGISTRY._entries))

    @LOSS_REGISTRY.register()
    class NormLoss:
        @classmethod
        def from_config(cls, cfg: Any) -> dict[str, Any]:
            return {}

        def __call__(self, outputs: dict[str, Tensor], targets: Tensor) -> dict[str, Tensor]:
            return {"loss_norm": outputs["features"].square().mean()}

    (loss,) = build_losses(make_cfg({"MODEL.LOSSES.NAME": ("NormLoss",)}))
    assert loss({"features": torch.ones(2, 2)}, torch.zeros(2))["loss_norm"] == 1


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ((), ValueError, "MODEL.LOSSES.NAME is empty; name at least one of CircleLoss"),
        (("TripletLoss", "TripletLoss"), ValueError, "MODEL.LOSSES.NAME names a loss twice"),
        (("TripletLos",), KeyError, r"unknown loss 'TripletLos' \(MODEL.LOSSES.NAME\); did you mean 'TripletLoss'"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(
    make_cfg: Callable[..., Any], names: tuple[str, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_losses(make_cfg({"MODEL.LOSSES.NAME": names}))


def test_an_entry_that_cannot_read_a_config_is_named(
    make_cfg: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOSS_REGISTRY, "_entries", {"Plain": dict})
    with pytest.raises(TypeError, match="the loss 'Plain' .* has no classmethod from_config"):
        build_losses(make_cfg({"MODEL.LOSSES.NAME": "Plain"}))
