"""The P x K samplers: what holds in every batch and over many epochs."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fastreid_lite.data.samplers import BalancedIdentitySampler, NaiveIdentitySampler
from fastreid_lite.data.samplers.balanced import _choose

BOTH = [NaiveIdentitySampler, BalancedIdentitySampler]
Kind = type[NaiveIdentitySampler] | type[BalancedIdentitySampler]


def batches(sampler: NaiveIdentitySampler | BalancedIdentitySampler, count: int) -> np.ndarray:
    """At least ``count`` batches (n, P, K) of whole epochs from the first on."""
    epochs = -(-count // sampler.batches_per_epoch)
    indices = np.concatenate([sampler.epoch_indices(epoch) for epoch in range(epochs)])
    return indices.reshape(-1, sampler.identities_per_batch, sampler.num_instances)


def check_structure(drawn: np.ndarray, pids: np.ndarray) -> None:
    """P different identities in each batch, K neighbouring images of each."""
    for batch in drawn:
        owners = [set(pids[group].tolist()) for group in batch]
        assert all(len(owner) == 1 for owner in owners)
        assert len(set.union(*owners)) == len(batch)


@pytest.mark.parametrize("kind", BOTH)
def test_the_golden_guarantees_hold(kind: Kind, shared: Path) -> None:
    golden = json.loads((shared / "golden" / "samplers.json").read_text())
    pids, camids = np.array(golden["pids"]), np.array(golden["camids"])
    sampler = kind(pids, camids, batch_size=16, num_instances=4, seed=golden["sampler_seed"])
    drawn = batches(sampler, 300)
    check_structure(drawn, pids)
    assert set(drawn.reshape(-1).tolist()) == set(range(len(pids)))  # no image and no identity is never seen
    expected = golden["samplers"][kind.__name__]
    groups = drawn.reshape(-1, 4)
    if expected["groups_with_a_repeated_image_though_identity_has_4_or_more"] == 0:
        assert all(len(set(group)) == 4 for group in groups.tolist() if (pids == pids[group[0]]).sum() >= 4)
    if expected["groups_with_first_camera_again_though_identity_has_another"] == 0:
        for group in groups:
            if len(set(camids[pids == pids[group[0]]].tolist())) > 1:
                assert not (camids[group[1:]] == camids[group[0]]).any()


@pytest.mark.parametrize("kind", BOTH)
def test_six_identities_four_a_batch(kind: Kind) -> None:
    pids = np.repeat(np.arange(6), 4)
    sampler = kind(pids, np.tile([0, 1], 12), batch_size=8, num_instances=2, seed=1)
    drawn = batches(sampler, 100)
    check_structure(drawn, pids)
    for epoch in range(34):
        assert set(pids[sampler.epoch_indices(epoch)].tolist()) == set(range(6))
    counts = Counter(pids[drawn[:, :, 0]].reshape(-1).tolist())
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("seed", [0, 7])
def test_identities_of_any_size_work_in_every_epoch(kind: Kind, seed: int) -> None:
    pids = np.repeat(np.arange(9), np.arange(1, 10))  # 1..9 images; K is 4
    sampler = kind(pids, None, batch_size=16, num_instances=4, seed=seed)
    assert sampler.batches_per_epoch == 2
    for epoch in range(5):
        indices = sampler.epoch_indices(epoch)
        assert indices.shape == (2 * 16,) and indices.dtype == np.int64
        check_structure(indices.reshape(2, 4, 4), pids)


def test_naive_draws_in_proportion_to_groups_of_k_images() -> None:
    sizes = np.array([1, 3, 4, 7, 8, 12, 40, 40])
    pids = np.repeat(np.arange(8), sizes)
    sampler = NaiveIdentitySampler(pids, batch_size=8, num_instances=4, seed=3)
    drawn = batches(sampler, 1000)
    counts = np.bincount(pids[drawn[:, :, 0]].reshape(-1), minlength=8)
    groups = np.maximum(sizes // 4, 1)
    share = groups / groups.sum() * counts.sum()
    assert (np.abs(counts - share) < 2).all()
    for size in set(groups.tolist()):
        assert np.ptp(counts[groups == size]) <= 1


def test_balanced_draws_every_identity_equally_often() -> None:
    pids = np.repeat(np.arange(7), [1, 3, 4, 7, 8, 12, 40])
    sampler = BalancedIdentitySampler(pids, batch_size=8, num_instances=4, seed=3)
    for count in (1, 10, 100, 1000):
        counts = np.bincount(pids[batches(sampler, count)[:, :, 0]].reshape(-1), minlength=7)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("kind", BOTH)
def test_an_identity_with_most_of_the_images_stands_once_in_each_batch(kind: Kind) -> None:
    pids = np.concatenate([np.zeros(300, dtype=int), np.repeat([1, 2, 3], 4)])
    sampler = kind(pids, batch_size=16, num_instances=4, seed=0)
    check_structure(batches(sampler, 50), pids)


@pytest.mark.parametrize("kind", BOTH)
def test_as_many_identities_as_a_batch_holds_are_enough(kind: Kind) -> None:
    pids = np.repeat([3, 9], [2, 30])
    sampler = kind(pids, batch_size=4, num_instances=2, seed=0)
    check_structure(batches(sampler, 30), pids)


def test_naive_repeats_small_identities_evenly_and_uses_up_the_images_of_large_ones() -> None:
    pids = np.array([0, 0, 0, 1, *[2] * 8, *[3] * 9])
    sampler = NaiveIdentitySampler(pids, batch_size=8, num_instances=4, seed=0)
    for epoch in range(40):
        groups = sampler.epoch_indices(epoch).reshape(-1, 4)
        of = {pid: groups[pids[groups[:, 0]] == pid] for pid in range(4)}
        for group in of[0]:
            assert sorted(Counter(group.tolist()).values()) == [1, 1, 2]
        assert (of[1] == 3).all()
        for pid in (2, 3):
            used = Counter(of[pid].reshape(-1).tolist())
            if len(of[pid]) <= 2:
                assert max(used.values(), default=1) == 1


def test_balanced_takes_other_cameras_first_then_other_images_then_the_image_itself() -> None:
    pids = np.array([0] * 5 + [1] * 4 + [2] + [3] * 6)
    camids = np.array([0, 0, 0, 0, 1] + [5] * 4 + [2] + [0, 0, 1, 1, 2, 2])
    sampler = BalancedIdentitySampler(pids, camids, batch_size=16, num_instances=4, seed=0)
    seen = {pid: Counter[int]() for pid in range(4)}
    for epoch in range(200):
        for group in sampler.epoch_indices(epoch).reshape(-1, 4).tolist():
            anchor, others = group[0], group[1:]
            seen[pids[anchor]].update(others)
            same = [other for other in others if camids[other] == camids[anchor]]
            if pids[anchor] in (0, 3):
                assert not same
            if pids[anchor] == 1:
                assert len(set(group)) == 4
            if pids[anchor] == 2:
                assert group == [9] * 4
            if pids[anchor] == 3:
                assert len(set(group)) == 4
            if anchor == 4:
                assert len(set(others)) == 3
    assert all(set(counter) == set(np.flatnonzero(pids == pid).tolist()) for pid, counter in seen.items())
    spread = [seen[3][index] for index in range(10, 16)]
    assert max(spread) < 1.5 * min(spread)


@pytest.mark.parametrize(("pool", "wanted"), [(5, 3), (3, 3), (2, 3), (1, 3), (4, 1), (3, 7)])
def test_choosing_is_without_repeats_where_possible_and_even_in_every_place(pool: int, wanted: int) -> None:
    chosen = _choose(np.full(20_000, pool), wanted, np.random.default_rng(0))
    assert chosen.shape == (20_000, wanted)
    for row in chosen[:500].tolist():
        often = sorted(Counter(row).values())
        assert len(often) == min(pool, wanted) and often[-1] - often[0] <= 1
    for place in range(wanted):
        counts = np.bincount(chosen[:, place], minlength=pool)
        assert len(counts) == pool and np.abs(counts - 20_000 / pool).max() < 6 * np.sqrt(20_000 / pool)


@pytest.mark.parametrize("kind", BOTH)
def test_an_epoch_is_a_function_of_seed_and_number(kind: Kind) -> None:
    pids, camids = np.repeat(np.arange(10), 6), np.tile([0, 1, 2], 20)

    def make(seed: int = 4) -> NaiveIdentitySampler | BalancedIdentitySampler:
        return kind(pids, camids, batch_size=8, num_instances=2, seed=seed)

    sampler = make()
    epochs = [sampler.epoch_indices(epoch).tolist() for epoch in range(3)]
    state = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    assert make().epoch_indices(1).tolist() == epochs[1]
    assert sampler.epoch_indices(0).tolist() == epochs[0]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert make(5).epoch_indices(0).tolist() != epochs[0]
    assert (state == np.random.get_state()[1]).all()  # type: ignore[index]


@pytest.mark.parametrize("kind", BOTH)
def test_identities_meet_as_random_pairs_do(kind: Kind) -> None:
    """The schedule that makes batches possible must not show: over an epoch two identities meet now and then."""
    pids = np.repeat(np.arange(40), 32)
    sampler = kind(pids, batch_size=32, num_instances=4, seed=0)
    met: Counter[tuple[int, int]] = Counter()
    for batch in pids[batches(sampler, 40)[:40, :, 0]]:
        met.update((a, b) for a in batch.tolist() for b in batch.tolist() if a < b)
    # 40 batches of 8 of 40: a pair is expected 40 * (8 * 7) / (40 * 39) = 1.4 times; Poisson beyond 8 is 1 in 40,000.
    assert max(met.values()) <= 8
    assert len(met) > 0.6 * 40 * 39 / 2


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("batch_size", "num_instances", "world_size", "message"),
    [
        (32, 4, 1, r"needs 8 different identities, but the training set has only 6.*IMS_PER_BATCH 32.*NUM_INSTANCE 4"),
        (10, 4, 1, r"10 images.*no multiple of the 4 images of an identity.*SOLVER.IMS_PER_BATCH 10"),
        (16, 4, 8, r"a process's share of a batch, 2 images \(16 over 8 processes\), is smaller than the 4 images"),
        (12, 4, 2, r"6 images \(12 over 2 processes\), is no multiple of the 4"),
        (16, 4, 3, r"batch of 16 images \(SOLVER.IMS_PER_BATCH\) cannot be shared evenly by 3 processes"),
        (48, 4, 1, r"36 training images are fewer than one batch of 48"),
        (16, 0, 1, r"num_instances \(DATALOADER.NUM_INSTANCE\) is 0"),
    ],
)
def test_impossible_settings_are_refused_with_their_numbers(
    kind: Kind, batch_size: int, num_instances: int, world_size: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(
            np.repeat(np.arange(6), 6),
            batch_size=batch_size,
            num_instances=num_instances,
            seed=0,
            world_size=world_size,
        )


def test_one_identity_a_process_is_said_to_leave_losses_without_negatives(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        NaiveIdentitySampler(np.repeat(np.arange(6), 6), batch_size=8, num_instances=4, seed=0, world_size=2)
    assert "each process sees a single identity" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_a_million_images_take_about_a_millisecond_for_each_thousand(kind: Kind) -> None:
    import time

    rng = np.random.default_rng(0)
    sampler = kind(
        rng.integers(0, 100_000, 1_000_000), rng.integers(0, 6, 1_000_000), batch_size=64, num_instances=4, seed=0
    )
    start = time.process_time()
    indices = sampler.epoch_indices(0)
    assert (time.process_time() - start) * 1e6 / len(indices) < 5  # ms per 1,000, with room for a busy machine
