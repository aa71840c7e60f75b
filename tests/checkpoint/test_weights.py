from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.checkpoint import CheckpointError, load_strict, load_weights, weights_of
from fastreid_lite.checkpoint.keys import FAST_REID

MODELS = Path(__file__).resolve().parents[3] / "shared" / "golden" / "models"


class Head(nn.Module):
    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, width))
        self.bottleneck = nn.Sequential(nn.BatchNorm1d(width))


class Model(nn.Module):
    """The names and kinds of a re-id model: a backbone, a BNNeck, a classifier."""

    def __init__(self, classes: int = 6, width: int = 4) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width))
        self.heads = Head(classes, width)


def copy_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("form", ["bare", "model", "state_dict", "run"])
@pytest.mark.parametrize("strict", [True, False])
def test_every_usual_form_of_file_loads(form: str, strict: bool) -> None:
    weights = copy_of(Model())
    forms: dict[str, dict[str, Any]] = {
        "bare": weights,
        "model": {"model": weights},
        "state_dict": {"state_dict": weights, "epoch": 3},
        "run": {"iteration": 3, "model": weights, "optimizer": {"state": {}}},
    }
    model = Model()
    report = load_weights(model, forms[form], strict_backbone=strict)
    assert equal(copy_of(model), weights)
    assert report.is_complete and report.problems() == ""
    assert sorted(report.loaded) == sorted(weights)


def test_what_is_not_weights_is_refused_with_what_was_found() -> None:
    with pytest.raises(CheckpointError, match="x.pth is a whole module .Linear., not weights; save its state_dict"):
        weights_of(nn.Linear(1, 1), source="x.pth")
    with pytest.raises(CheckpointError, match="x.pth holds a list; expected a dict of weights"):
        weights_of([1], source="x.pth")
    with pytest.raises(CheckpointError, match=r"x.pth has no weights .* found net \(dict\), epoch \(int\)"):
        weights_of({"net": {}, "epoch": 1}, source="x.pth")
    with pytest.raises(CheckpointError, match="found nothing"):
        weights_of({}, source="x.pth")


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("classes", [0, 751])
def test_a_classifier_of_another_size_is_one_info_line(
    caplog: pytest.LogCaptureFixture, strict: bool, classes: int
) -> None:
    source, model = Model(classes=6), Model(classes=classes)
    before = model.heads.weight.detach().clone()
    with caplog.at_level(logging.INFO):
        report = load_weights(model, copy_of(source), strict_backbone=strict, source="x.pth")
    assert report.classifier == ("heads.weight",)
    assert report.is_complete
    assert torch.equal(model.heads.weight, before)
    assert torch.equal(model.state_dict()["backbone.0.weight"], source.state_dict()["backbone.0.weight"])
    about = [record for record in caplog.records if "classifier (heads.weight) was not taken" in record.message]
    assert [record.levelno for record in about] == [logging.INFO]
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_what_else_has_a_row_a_class_under_heads_goes_with_the_classifier() -> None:
    source, model = copy_of(Model(classes=6)), Model(classes=9)
    model.heads.register_buffer("centers", torch.zeros(9, 2))
    report = load_weights(model, {**source, "heads.centers": torch.ones(6, 2)}, strict_backbone=True)
    assert set(report.classifier) == {"heads.weight", "heads.centers"}


def test_a_neck_of_another_width_is_not_the_classifier() -> None:
    weights = copy_of(Model())
    weights["heads.bottleneck.0.weight"] = torch.ones(5)
    with pytest.raises(CheckpointError, match=r"heads.bottleneck.0.weight \[5\] in the file, \[4\] in the model"):
        load_weights(Model(), weights, strict_backbone=True)


def test_a_file_without_a_classifier_may_be_evaluated() -> None:
    weights = copy_of(Model())
    del weights["heads.weight"]
    assert load_weights(Model(), weights, strict_backbone=True).classifier == ("heads.weight",)


@pytest.mark.parametrize("damage", ["shape", "renamed"])
def test_a_damaged_backbone_is_an_error_in_evaluation_and_a_warning_in_training(
    caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    weights = copy_of(Model())
    if damage == "shape":
        weights["backbone.0.weight"] = torch.ones(4, 7)
        named = [r"backbone.0.weight [4, 7] in the file, [4, 3] in the model"]
    else:
        weights["heads.neck.weight"] = weights.pop("heads.bottleneck.0.weight")
        named = ["missing in the file: heads.bottleneck.0.weight", "unexpected in the file: heads.neck.weight"]
    model = Model()
    before = copy_of(model)
    with pytest.raises(CheckpointError, match="x.pth does not fit the model") as caught:
        load_weights(model, weights, strict_backbone=True, source="x.pth")
    assert all(words in str(caught.value) for words in named)
    assert equal(copy_of(model), before)
    report = load_weights(model, weights, strict_backbone=False, source="x.pth")
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert all(words in warning for words in named)
    assert len(report.loaded) == len(before) - 1
    with pytest.raises(CheckpointError, match="x.pth was written by a run of another model") as caught:
        load_strict(Model(), weights, source="x.pth")
    assert all(words in str(caught.value) for words in named)


def test_long_lists_of_names_are_cut() -> None:
    weights = {name: tensor for name, tensor in copy_of(Model()).items() if name.startswith("backbone.0.")}
    weights |= {f"old.{number}": torch.ones(1) for number in range(30)}
    with pytest.raises(CheckpointError, match=r"unexpected in the file: old.0, .*old.7 and 22 more$"):
        load_weights(Model(), weights, strict_backbone=True)


def test_a_file_with_nothing_in_common_is_always_an_error() -> None:
    with pytest.raises(
        CheckpointError, match="not one of the 1 tensors in x.pth fits the model: the file has features"
    ):
        load_weights(Model(), {"features.weight": torch.ones(2)}, strict_backbone=False, source="x.pth")


def test_counters_of_batches_may_be_absent() -> None:
    weights = {name: tensor for name, tensor in copy_of(Model()).items() if "num_batches" not in name}
    assert load_weights(Model(), weights, strict_backbone=True).is_complete


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module.module.", "_orig_mod.module."])
def test_prefixes_of_wrappers_on_all_names_are_taken_off(prefix: str) -> None:
    weights = copy_of(Model())
    model = Model()
    load_weights(model, {prefix + name: tensor for name, tensor in weights.items()}, strict_backbone=True)
    assert equal(copy_of(model), weights)


@pytest.mark.parametrize("strict", [True, False])
def test_a_file_with_the_prefix_on_some_names_is_refused_whole(strict: bool) -> None:
    weights = copy_of(Model())
    mixed = {f"module.{name}" if "backbone" in name else name: tensor for name, tensor in weights.items()}
    model = Model()
    before = copy_of(model)
    with pytest.raises(CheckpointError, match="7 of the 13 names in x.pth begin with 'module.' .*nothing was loaded"):
        load_weights(model, mixed, strict_backbone=strict, source="x.pth")
    assert equal(copy_of(model), before)


class OnlyChild(nn.Module):
    def __init__(self, more: bool) -> None:
        super().__init__()
        self.module = nn.Linear(2, 2)
        if more:
            self.head = nn.Linear(2, 1)


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("prefix", ["", "module.", "module.module.", "_orig_mod."])
def test_a_child_that_is_really_called_module_keeps_its_name(more: bool, prefix: str) -> None:
    source, model = OnlyChild(more), OnlyChild(more)
    weights = copy_of(source)
    load_weights(model, {prefix + name: tensor for name, tensor in weights.items()}, strict_backbone=True)
    assert equal(copy_of(model), weights)


def test_old_names_of_fast_reid_are_converted() -> None:
    weights = copy_of(Model())
    old = {"pixel_mean": torch.ones(1, 3, 1, 1), "pixel_std": torch.ones(1, 3, 1, 1)}
    for name, tensor in weights.items():
        old[name.replace("bottleneck.0", "bnneck").replace("heads.weight", "heads.classifier.weight")] = tensor
    model = Model()
    report = load_weights(model, {"model": old}, strict_backbone=True)
    assert equal(copy_of(model), weights)
    assert report.problems() == ""


def test_a_name_that_the_model_has_is_never_converted() -> None:
    names = ["heads.classifier.weight", "heads.bnneck.bias", "pixel_mean"]
    assert FAST_REID.rename(names, names) == {name: name for name in names}
    both = ["heads.classifier.weight", "heads.weight"]
    assert FAST_REID.rename(both, ["heads.weight"]) == {name: name for name in both}


@pytest.mark.skipif(not MODELS.is_dir(), reason="the golden vectors are not beside this checkout")
def test_todays_names_of_fast_reid_need_no_conversion() -> None:
    for path in sorted(MODELS.glob("*.json")):
        names = [name for name, *_ in json.loads(path.read_text())["state_dict"]]
        assert FAST_REID.rename(names, names) == {name: name for name in names}


def test_the_types_of_the_model_stay() -> None:
    model = Model().to(torch.float64)
    load_weights(model, copy_of(Model()), strict_backbone=True)
    assert model.backbone[0].weight.dtype == torch.float64


def test_a_strict_load_takes_everything() -> None:
    source, model = Model(), Model()
    load_strict(model, copy_of(source))
    assert equal(copy_of(model), copy_of(source))
    with pytest.raises(
        CheckpointError, match=r"heads.weight \[6, 4\] in the file, \[7, 4\] in the model.*MODEL.WEIGHTS"
    ):
        load_strict(Model(classes=7), copy_of(source))
