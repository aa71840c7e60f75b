from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from fastreid_lite.data import samplers
from fastreid_lite.data.samplers import (
    SAMPLER_REGISTRY,
    BalancedIdentitySampler,
    EpochSampler,
    NaiveIdentitySampler,
    TrainingSampler,
    build_sampler,
)
from fastreid_lite.data.samples import Samples


def test_every_epoch_is_another_order_and_leaves_others_out() -> None:
    sampler = TrainingSampler(np.arange(11), batch_size=4, seed=0)
    assert sampler.batches_per_epoch == 2
    epochs = [sampler.epoch_indices(epoch) for epoch in range(20)]
    assert all(len(set(epoch.tolist())) == 8 and epoch.dtype == np.int64 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 20
    assert len({tuple(set(range(11)) - set(epoch.tolist())) for epoch in epochs}) > 10
    assert (TrainingSampler(np.arange(11), batch_size=4, seed=0).epoch_indices(3) == epochs[3]).all()


@pytest.mark.parametrize("kind", [TrainingSampler, NaiveIdentitySampler, BalancedIdentitySampler])
@pytest.mark.parametrize("use", ["sampler", "batch_sampler"])
def test_use_as_a_torch_sampler_fails_with_a_hint(kind: Any, use: str) -> None:
    sampler = kind(np.repeat(np.arange(4), 4), batch_size=4, num_instances=2, seed=0)
    with pytest.raises(TypeError, match=rf"a {kind.__name__} is neither.*hand it to TrainLoader"):
        next(iter(DataLoader(list(range(16)), **{use: sampler})))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        len(sampler)


def test_identities_that_are_not_all_integers_are_refused() -> None:
    with pytest.raises(TypeError, match="pids are of type int, str, expected integers"):
        TrainingSampler([1, 1, "cuhk01_1", "cuhk01_1"], batch_size=2, seed=0)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="camids are of type float"):
        TrainingSampler([1, 2], [0.5, 1.0], batch_size=2, seed=0)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pids": [[1, 2]]}, r"pids have shape \(1, 2\)"),
        ({"camids": [1]}, "1 camids for 3 pids"),
        ({"batch_size": 0}, r"batch_size \(SOLVER.IMS_PER_BATCH\) is 0, expected an integer >= 1"),
        ({"batch_size": 2.0}, "batch_size.*is 2.0"),
        ({"batch_size": 4}, "3 training images are fewer than one batch of 4"),
        ({"pids": []}, "0 training images are fewer than one batch of 2"),
        ({"batch_size": 3, "world_size": 2}, "cannot be shared evenly by 2 processes"),
        ({"world_size": 0}, "world_size is 0"),
        ({"seed": -1}, r"seed \(SEED\) is -1"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"pids": [1, 2, 3], "camids": None, "batch_size": 2, "seed": 0, **changes}
    with pytest.raises(ValueError, match=message):
        TrainingSampler(**arguments)


def test_a_negative_epoch_is_refused() -> None:
    with pytest.raises(ValueError, match="epoch is -1"):
        TrainingSampler([1, 2], batch_size=2, seed=0).epoch_indices(-1)


def test_the_base_says_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="EpochSampler does not define epoch_indices"):
        EpochSampler([1, 2], batch_size=2, seed=0).epoch_indices(0)


def test_a_sampler_is_built_by_its_name() -> None:
    from types import SimpleNamespace

    samples = Samples(("",) * 8, {"pid": np.repeat(np.arange(4), 2)})
    for name in ("TrainingSampler", "NaiveIdentitySampler", "BalancedIdentitySampler"):
        cfg = SimpleNamespace(
            DATALOADER=SimpleNamespace(SAMPLER_TRAIN=name, NUM_INSTANCE=2), SOLVER=SimpleNamespace(IMS_PER_BATCH=4)
        )
        sampler = build_sampler(cfg, samples, seed=0, world_size=2)
        assert type(sampler).__name__ == name and sampler.batches_per_epoch == 2
    cfg.DATALOADER.SAMPLER_TRAIN = "NaiveIdentitySamples"
    with pytest.raises(
        KeyError, match=r"unknown sampler.*DATALOADER.SAMPLER_TRAIN.*did you mean 'NaiveIdentitySampler'"
    ):
        build_sampler(cfg, samples, seed=0)
    assert SAMPLER_REGISTRY.names() == ["BalancedIdentitySampler", "NaiveIdentitySampler", "TrainingSampler"]


def test_every_name_that_the_package_lists_is_there() -> None:
    for name in samplers.__all__:
        assert getattr(samplers, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = samplers.Nothing
