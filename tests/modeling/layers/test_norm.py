from __future__ import annotations

import io
import logging

import pytest
import torch
from torch import nn

from fastreid_lite.modeling.layers.norm import get_norm
from fastreid_lite.utils import comm
from tests.processes import run_processes


@pytest.mark.parametrize("name", ["BN", "syncBN", "FrozenBN", "GN"])
def test_every_norm_runs_on_the_cpu_in_training(name: str) -> None:
    assert get_norm(name, 32)(torch.randn(4, 32, 3, 2)).shape == (4, 32, 3, 2)


def two_sync_steps() -> tuple[bool, str]:
    """Whether a process normalised by its own images alone, and what it logged."""
    text = io.StringIO()
    logging.getLogger("fastreid_lite").addHandler(logging.StreamHandler(text))
    norm, plain = get_norm("syncBN", 4), nn.BatchNorm2d(4)
    wrapped = nn.parallel.DistributedDataParallel(norm, broadcast_buffers=False)
    own = torch.Generator().manual_seed(comm.get_rank())
    same = []
    for _ in range(2):
        maps = torch.rand(3, 4, 2, 2, generator=own) + comm.get_rank()
        normalised = wrapped(maps)
        normalised.square().sum().backward()
        same.append(torch.equal(normalised, plain(maps)))
    same += [torch.equal(value, norm.state_dict()[name]) for name, value in plain.state_dict().items()]
    return all(same), text.getvalue()


def test_sync_norm_is_a_plain_one_on_the_cpu_in_several_processes_and_says_so_once() -> None:
    for is_plain, text in run_processes(two_sync_steps, 2):
        assert is_plain
        assert text.count("'syncBN' (MODEL.BACKBONE.NORM, MODEL.HEADS.NORM) does not synchronise on the CPU") == 1


def test_sync_norm_is_torchs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = get_norm("syncBN", 4).to("meta")
    assert norm(torch.zeros(2, 4, 3, 3, device="meta")).shape == (2, 4, 3, 3)
    asked: list[nn.Module] = []

    def forward(self: nn.Module, maps: torch.Tensor) -> torch.Tensor:
        asked.append(self)
        return maps

    monkeypatch.setattr(nn.SyncBatchNorm, "forward", forward)
    norm(torch.zeros(2, 4, 3, 3, device="meta"))
    assert asked == [norm] and set(norm.state_dict()) == set(nn.SyncBatchNorm(4).state_dict())


def test_a_frozen_bias_exists_and_does_not_train() -> None:
    norm = get_norm("BN", 8, bias_freeze=True)
    assert {name: p.requires_grad for name, p in norm.named_parameters()} == {"weight": True, "bias": False}
    assert not norm.state_dict()["bias"].any()


def test_a_frozen_norm_has_no_parameter_and_reads_the_state_of_a_batch_norm() -> None:
    norm = get_norm("FrozenBN", 8, bias_freeze=True)
    norm.load_state_dict(nn.BatchNorm2d(8).state_dict())
    assert not list(norm.parameters())


def test_an_unknown_norm_is_named() -> None:
    with pytest.raises(KeyError, match="unknown norm 'BM' .*MODEL.BACKBONE.NORM"):
        get_norm("BM", 8)


def test_group_norm_of_a_width_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="'GN' has 32 groups and needs a multiple of 32 channels, got 40"):
        get_norm("GN", 40)
