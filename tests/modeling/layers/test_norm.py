from __future__ import annotations

import pytest
import torch
from torch import nn

from fastreid_lite.modeling.layers.norm import get_norm


@pytest.mark.parametrize("name", ["BN", "syncBN", "FrozenBN", "GN"])
def test_every_norm_runs_on_the_cpu_in_training(name: str) -> None:
    assert get_norm(name, 32)(torch.randn(4, 32, 3, 2)).shape == (4, 32, 3, 2)


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
