from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.solver import OPTIMIZERS, build_lr_schedule, build_optimizer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.heads = nn.Linear(4, 3)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.heads(self.backbone(features))


def small_model() -> Net:
    torch.manual_seed(0)
    return Net()


def one_step(model: Net, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    generator = torch.Generator().manual_seed(3)
    out = model(torch.randn(8, 4, generator=generator))
    out.square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad", "NAdam", "RMSprop", "Rprop"])
def test_every_parameter_moves_and_fused_kernels_are_used_where_they_exist(make_config: Any, name: str) -> None:
    model = small_model()
    optimizer = build_optimizer(make_config(OPT=name, BASE_LR=0.1), model)
    assert type(optimizer) is getattr(torch.optim, name)
    assert bool(optimizer.defaults.get("fused")) == (name in ("Adam", "AdamW", "SGD", "Adagrad"))
    moved = one_step(model, optimizer)
    # A bias in front of a batch norm has no gradient, so only its decay may move it.
    del moved["backbone.0.bias"]
    assert all(change.abs().max() > 0 for change in moved.values())


def test_the_fused_step_equals_the_plain_one(make_config: Any) -> None:
    fused, plain = small_model(), small_model()
    cfg = make_config(OPT="Adam", BASE_LR=0.1, WEIGHT_DECAY=0.1, WEIGHT_DECAY_NORM=0.0, HEADS_LR_FACTOR=3.0)
    optimizer = build_optimizer(cfg, fused)
    same = torch.optim.Adam(
        [
            {key: group[key] for key in ("params", "lr", "weight_decay")}
            for group in build_optimizer(cfg, plain).param_groups
        ],
        fused=False,
        foreach=False,
    )
    for _ in range(3):
        one_step(fused, optimizer)
        one_step(plain, same)
    for (name, ours), theirs in zip(fused.named_parameters(), plain.parameters()):
        # The gradient of a bias in front of a batch norm is rounding noise, which Adam brings to full size.
        if name != "backbone.0.bias":
            torch.testing.assert_close(ours, theirs)


def test_a_type_without_a_fused_kernel_falls_back(make_config: Any) -> None:
    model = nn.Module()
    model.weight = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    optimizer = build_optimizer(make_config(OPT="SGD"), model)
    assert not optimizer.defaults["fused"]
    model.weight.grad = torch.ones_like(model.weight)
    optimizer.step()
    assert model.weight.detach().real.max() < 1.0


def test_a_model_moved_afterwards_still_trains(make_config: Any) -> None:
    model = small_model()
    optimizer = build_optimizer(make_config(OPT="SGD", BASE_LR=0.1), model)
    model.to(torch.float64).to(torch.float32)
    assert one_step(model, optimizer)["heads.weight"].abs().max() > 0


def test_sgd_takes_momentum_and_nesterov_from_the_config(make_config: Any) -> None:
    optimizer = build_optimizer(make_config(OPT="SGD", MOMENTUM=0.7, NESTEROV=True), small_model())
    assert all(group["momentum"] == 0.7 and group["nesterov"] for group in optimizer.param_groups)
    with pytest.raises(ValueError, match="SOLVER.NESTEROV needs a SOLVER.MOMENTUM above 0, got 0.0"):
        build_optimizer(make_config(OPT="SGD", MOMENTUM=0.0, NESTEROV=True), small_model())


def test_group_zero_is_the_base_group_and_ratios_hold_through_the_schedule(make_config: Any) -> None:
    cfg = make_config(
        OPT="SGD", BIAS_LR_FACTOR=2.0, HEADS_LR_FACTOR=10.0, STEPS_ITERS=(3, 6), WARMUP_ITERS=4, MAX_ITER=12
    )
    optimizer = build_optimizer(cfg, small_model())
    schedule = build_lr_schedule(cfg, iters_per_epoch=4, max_iter=12)
    assert "base" in optimizer.param_groups[0]["name"]
    for iteration in range(12):
        for group in optimizer.param_groups:
            group["lr"] = schedule.lr(group["base_lr"], iteration)
        by_name = {group["name"]: group["lr"] / optimizer.param_groups[0]["lr"] for group in optimizer.param_groups}
        assert by_name == pytest.approx({"base+norm": 1.0, "bias": 2.0, "heads": 10.0, "heads.bias": 20.0})


def test_the_state_loads_with_weights_only(make_config: Any, tmp_path: Any) -> None:
    model = small_model()
    optimizer = build_optimizer(make_config(), model)
    one_step(model, optimizer)
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pth")
    other = small_model()
    build_optimizer(make_config(), other).load_state_dict(torch.load(tmp_path / "optimizer.pth"))


def test_settings_without_effect_are_warned_of(make_config: Any, caplog: pytest.LogCaptureFixture) -> None:
    build_optimizer(make_config(OPT="Rprop", NESTEROV=True), small_model())
    assert "SOLVER.NESTEROV True has no effect: SOLVER.OPT is Rprop, not SGD" in caplog.text
    assert "the SOLVER.WEIGHT_DECAY keys have no effect: SOLVER.OPT Rprop has no weight decay" in caplog.text


def test_unfit_and_unknown_optimizers_are_refused_with_the_names(make_config: Any) -> None:
    with pytest.raises(KeyError, match="unknown optimizer 'Adamm' .SOLVER.OPT.; did you mean 'Adam'.* Known: ASGD"):
        build_optimizer(make_config(OPT="Adamm"), small_model())
    for name in ("LBFGS", "SparseAdam", "Optimizer"):
        with pytest.raises(KeyError, match=f"unknown optimizer '{name}'"):
            build_optimizer(make_config(OPT=name), small_model())


def test_what_torch_refuses_is_said_with_the_key(make_config: Any) -> None:
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    with pytest.raises(ValueError, match="SOLVER.OPT Muon refuses the settings"):
        build_optimizer(make_config(OPT="Muon"), small_model())


def test_an_optimizer_registered_elsewhere_is_built_by_its_name(make_config: Any) -> None:
    class MySGD(torch.optim.SGD):
        pass

    OPTIMIZERS.register(MySGD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(build_optimizer(make_config(OPT="MySGD"), small_model()), MySGD)


def test_layers_frozen_at_first_stand_in_groups_of_their_own(make_config: Any) -> None:
    cfg = make_config(FREEZE_LAYERS=["backbone"], FREEZE_ITERS=10)
    frozen = [
        name for g in build_optimizer(cfg, small_model()).param_groups if g["frozen"] for name in g["param_names"]
    ]
    assert frozen == [f"backbone.{i}.{kind}" for i in (0, 1) for kind in ("weight", "bias")]
    cfg = make_config(FREEZE_LAYERS=[""], FREEZE_ITERS=10)
    assert len(build_optimizer(cfg, small_model()).param_groups) == 1
