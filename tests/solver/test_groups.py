from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.solver import parameter_groups
from fastreid_lite.solver.groups import is_norm

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"
BASE: dict[str, Any] = {"base_lr": 0.1, "weight_decay": 0.5, "weight_decay_norm": 0.25, "weight_decay_bias": 0.125}


class Scale(nn.BatchNorm1d):
    """A normalisation layer with nothing in it."""

    def __init__(self) -> None:
        super().__init__(1, affine=False, track_running_stats=False)


def model_with_names(names: list[str], frozen: list[str], norms: set[str]) -> nn.Module:
    """A model that has parameters of one number under ``names``; modules in ``norms`` are normalisation layers."""
    root = nn.Module()
    for name in names:
        *path, own = name.split(".")
        module = root
        for depth, part in enumerate(path):
            if part not in module._modules:
                is_a_norm = ".".join(path[: depth + 1]) in norms
                module.add_module(part, Scale() if is_a_norm else nn.Module())
            child = module._modules[part]
            assert child is not None
            module = child
        delattr(module, own) if own in module._parameters else None
        module.register_parameter(own, nn.Parameter(torch.zeros(1), requires_grad=name not in frozen))
    return root


def golden_cases() -> list[str]:
    path = GOLDEN / "optimizer_groups.json"
    return sorted(json.loads(path.read_text())) if path.is_file() else []


@pytest.mark.skipif(not golden_cases(), reason="the golden vectors are not beside this checkout")
@pytest.mark.parametrize("case_name", golden_cases())
def test_rates_and_decays_of_every_parameter_equal_those_of_fast_reid(case_name: str) -> None:
    case = json.loads((GOLDEN / "optimizer_groups.json").read_text())[case_name]
    recipe = case_name.split(":")[0]
    settings = {**json.loads((GOLDEN / "configs.json").read_text())[recipe], **case["overrides"]}
    layout = json.loads((GOLDEN / "models" / f"{Path(recipe).stem}.json").read_text())["state_dict"]
    shapes = {name: shape for name, shape, *_ in layout}
    trained = {name for group in case["groups"] for name in group["names"]}
    names = [name for name in shapes if name in trained or name in case["left_out"]]
    # One-dimensional scales are those of norms: every other weight of these models has two dimensions or more.
    norms = {name.rpartition(".")[0] for name in names if name.endswith(".weight") and len(shapes[name]) == 1}
    groups = parameter_groups(
        model_with_names(names, case["left_out"], norms),
        base_lr=settings["SOLVER.BASE_LR"],
        weight_decay=settings["SOLVER.WEIGHT_DECAY"],
        weight_decay_norm=settings["SOLVER.WEIGHT_DECAY_NORM"],
        weight_decay_bias=settings["SOLVER.WEIGHT_DECAY_BIAS"],
        bias_lr_factor=settings["SOLVER.BIAS_LR_FACTOR"],
        heads_lr_factor=settings["SOLVER.HEADS_LR_FACTOR"],
        freeze_layers=case["freeze_layers"],
    )
    found = {(g["lr"], g["weight_decay"], g["frozen"]): sorted(g["param_names"]) for g in groups}
    wanted = {(g["lr"], g["weight_decay"], g["freeze_status"] == "freeze"): sorted(g["names"]) for g in case["groups"]}
    assert len(found) == len(groups) == len(case["merged_buffers"])
    assert found == wanted


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        self.backbone = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Linear(3, 3))


def test_every_rule_meets_every_other() -> None:
    groups = parameter_groups(Net(), **BASE, bias_lr_factor=2.0, heads_lr_factor=10.0)
    found = {g["name"]: (g["param_names"], g["lr"] / 0.1, g["weight_decay"]) for g in groups}
    assert found == {
        "base": (["backbone.0.weight", "backbone.2.weight"], 1.0, 0.5),
        "heads": (["heads.0.weight"], 10.0, 0.5),
        "heads.bias": (["heads.0.bias", "heads.1.bias"], 20.0, 0.125),
        "heads.norm": (["heads.1.weight"], 10.0, 0.25),
        "bias": (["backbone.0.bias", "backbone.1.bias", "backbone.2.bias"], 2.0, 0.125),
        "norm": (["backbone.1.weight"], 1.0, 0.25),
    }
    assert groups[0]["name"] == "base"
    assert all(g["lr"] == g["base_lr"] for g in groups)


def test_equal_settings_share_one_group_in_the_order_of_the_model() -> None:
    model = Net()
    (group,) = parameter_groups(model, base_lr=0.1, weight_decay=0.5, weight_decay_norm=0.5, weight_decay_bias=0.5)
    assert group["param_names"] == [name for name, _ in model.named_parameters()]
    assert [id(p) for p in group["params"]] == [id(p) for p in model.parameters()]
    assert group["name"] == "heads+heads.bias+heads.norm+base+bias+norm"


def test_parameters_to_be_frozen_for_a_while_stand_apart() -> None:
    groups = parameter_groups(Net(), **BASE, freeze_layers=["backbone.0", "heads"])
    frozen = [name for g in groups if g["frozen"] for name in g["param_names"]]
    assert sorted(frozen) == [
        f"{name}.{kind}" for name in ("backbone.0", "heads.0", "heads.1") for kind in ("bias", "weight")
    ]
    assert len({g["name"] for g in groups}) == len(groups)


def test_what_does_not_train_is_left_out_and_what_is_shared_counts_once() -> None:
    model = Net()
    model.backbone[0].weight.requires_grad_(False)
    model.backbone.add_module("again", model.backbone[2])
    names = [name for g in parameter_groups(model, **BASE) for name in g["param_names"]]
    assert "backbone.0.weight" not in names
    assert sorted(names) == sorted(set(names))
    assert not [name for name in names if "again" in name]


def test_wrappers_do_not_hide_the_heads() -> None:
    model = Net()
    bare = [(g["name"], g["param_names"]) for g in parameter_groups(model, **BASE, heads_lr_factor=3.0)]
    wrapped = parameter_groups(nn.DataParallel(model), **BASE, heads_lr_factor=3.0)
    assert [(g["name"], g["param_names"]) for g in wrapped] == bare


def test_norms_of_other_libraries_are_known_by_name_and_shape() -> None:
    class RmsNorm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

    class NormLinear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 4))

    assert is_norm(RmsNorm())
    assert is_norm(nn.RMSNorm(4))
    assert is_norm(nn.SyncBatchNorm(4))
    assert is_norm(nn.InstanceNorm2d(4, affine=True))
    assert not is_norm(NormLinear())
    assert not is_norm(nn.Sequential(RmsNorm()))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="SOLVER.BASE_LR is -1; expected a finite number of 0 or more"):
        parameter_groups(Net(), **{**BASE, "base_lr": -1})
    with pytest.raises(ValueError, match="SOLVER.WEIGHT_DECAY_NORM is nan"):
        parameter_groups(Net(), **{**BASE, "weight_decay_norm": float("nan")})
    with pytest.raises(ValueError, match="Net has no parameter with requires_grad True: there is nothing to train"):
        parameter_groups(Net().requires_grad_(False), **BASE)
