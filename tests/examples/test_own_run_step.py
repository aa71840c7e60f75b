"""A subclass of TrainerBase with a step of its own keeps all the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

Example = Callable[[str], ModuleType]


def test_both_networks_learn(example: Example, tmp_path: Path) -> None:
    trainer = example("own_run_step").main(str(tmp_path), 200)
    points = torch.rand(1000, 2, generator=torch.Generator().manual_seed(10**6)) - 0.5
    labels = (points.prod(1) > 0).long()
    for network in trainer.networks:
        with torch.no_grad():
            assert (network(points).argmax(1) == labels).float().mean() > 0.9


def test_a_run_in_two_parts_ends_with_the_same_bytes(
    example: Example, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    main = example("own_run_step").main
    whole = main(str(tmp_path / "whole"), 60)
    first = main(str(tmp_path / "parts"), 27)
    with caplog.at_level(logging.WARNING):
        second = main(str(tmp_path / "parts"), 60)
    assert not caplog.records
    assert (first.iter, second.start_iter, second.iter) == (27, 27, 60)
    for network, other in zip(whole.networks, second.networks):
        for name, value in network.state_dict().items():
            assert torch.equal(value, other.state_dict()[name]), name
    assert whole.storage.history("loss_0") == second.storage.history("loss_0")
