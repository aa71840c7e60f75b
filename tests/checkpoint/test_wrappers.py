from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from fastreid_lite.checkpoint import clean_state_dict, load_strict, load_weights, unwrap_model
from fastreid_lite.checkpoint.wrappers import clean_parameter_names


class WithRealChild(nn.Module):
    """A model with a child that is really called ``module``."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(2, 2)
        self.head = nn.Linear(2, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.head(self.module(features))


@pytest.fixture
def one_process(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_wrapped_models_have_the_names_of_the_bare_one(one_process: None) -> None:
    bare = WithRealChild()
    names = list(bare.state_dict())
    parallel = nn.parallel.DistributedDataParallel(bare)
    for wrapped in (bare, parallel, torch.compile(bare), torch.compile(parallel), nn.DataParallel(bare)):
        assert isinstance(wrapped, nn.Module)
        assert unwrap_model(wrapped) is bare
        assert list(clean_state_dict(wrapped)) == names
        assert set(clean_parameter_names(wrapped).values()) == set(names)


def test_a_part_compiled_in_place_has_a_clean_name_too() -> None:
    model = WithRealChild()
    names = list(model.state_dict())
    model.head = torch.compile(model.head)  # type: ignore[assignment]
    assert "head._orig_mod.weight" in model.state_dict()
    assert list(clean_state_dict(model)) == names


def test_weights_travel_between_wrapped_and_bare_models(one_process: None) -> None:
    source = WithRealChild()
    wrapped = nn.parallel.DistributedDataParallel(WithRealChild())
    compiled = WithRealChild()
    compiled.head = torch.compile(compiled.head)  # type: ignore[assignment]
    for target in (wrapped, compiled):
        load_strict(target, clean_state_dict(source))
        assert all(torch.equal(a, b) for a, b in zip(target.parameters(), source.parameters()))
        nn.init.zeros_(next(target.parameters()))
        load_weights(target, {"model": clean_state_dict(source)}, strict_backbone=True)
        assert all(torch.equal(a, b) for a, b in zip(target.parameters(), source.parameters()))


def test_buffers_and_shared_parameters_keep_their_names() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    model.add_module("again", model[1])
    assert list(clean_state_dict(nn.DataParallel(model))) == list(model.state_dict())
    assert set(clean_parameter_names(model).values()) == {"0.weight", "0.bias", "1.weight", "1.bias"}
