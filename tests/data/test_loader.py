"""Same batches whatever the workers, the start and the number of processes; and clear errors."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.data.images import ImageReadError, read_image
from fastreid_lite.data.loader import TestLoader, TrainLoader
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.samplers import NaiveIdentitySampler, TrainingSampler
from fastreid_lite.data.samples import Samples
from fastreid_lite.data.transforms import PadAndCrop, RandomErasing, RandomHorizontalFlip

PREPROCESSOR = Preprocessor(
    (12, 6), (12, 6), after_resize=[PadAndCrop(2), RandomHorizontalFlip(0.5), RandomErasing(0.5)]
)


def make(samples: Samples, *, batch_size: int = 4, **options: Any) -> TrainLoader:
    sampler = NaiveIdentitySampler(samples.pids, samples.camids, batch_size=batch_size, num_instances=2, seed=3)
    return TrainLoader(samples, sampler, PREPROCESSOR, batch_size=batch_size, seed=5, **options)


def same(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> bool:
    return len(first) == len(second) and all(
        a.keys() == b.keys()
        and all(torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key] for key in a)
        for a, b in zip(first, second)
    )


def two_epochs(loader: TrainLoader | TestLoader) -> list[dict[str, Any]]:
    return [*loader, *loader]


@pytest.fixture(scope="module")
def reference(toy: Samples) -> list[dict[str, Any]]:
    return two_epochs(make(toy))


def test_a_batch_has_what_the_model_expects(toy: Samples, reference: list[dict[str, Any]]) -> None:
    assert len(make(toy)) == 6 and len(reference) == 12
    batch = reference[0]
    assert set(batch) == {"images", "targets", "camids", "img_paths", "indices"}
    assert batch["images"].shape == (4, 3, 12, 6) and batch["images"].dtype == torch.uint8
    assert batch["images"].is_contiguous()
    for row, index in enumerate(batch["indices"].tolist()):
        assert batch["img_paths"][row] == toy.paths[index]
        assert batch["targets"][row] == toy.pids[index]
        assert batch["camids"][row] == toy.columns["camid"][index]
    assert all(batch[key].dtype == torch.int64 for key in ("targets", "camids", "indices"))


def test_the_order_is_the_samplers(toy: Samples, reference: list[dict[str, Any]]) -> None:
    sampler = make(toy).sampler
    order = np.concatenate([sampler.epoch_indices(0), sampler.epoch_indices(1)])
    assert torch.cat([batch["indices"] for batch in reference]).tolist() == order.tolist()


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_changes_nothing(toy: Samples, reference: list[dict[str, Any]], workers: int) -> None:
    loader = make(toy, num_workers=workers)
    assert same(two_epochs(loader), reference)
    loader.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_any_position_gives_the_batches_from_there(toy: Samples, reference: list[dict[str, Any]], workers: int) -> None:
    loader = make(toy, num_workers=workers)
    for start in (0, 1, 5, 6, 8):
        loader.set_position(*divmod(start, 6))
        assert same([*loader], reference[start : 6 if start < 6 else 12])
        assert loader.position == (1 if start < 6 else 2, 0)
    loader.set_position(0, 6)
    assert loader.position == (1, 0)
    loader.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_that_was_dropped_is_carried_on(
    toy: Samples, reference: list[dict[str, Any]], workers: int
) -> None:
    loader = make(toy, num_workers=workers)
    dropped = iter(loader)
    got = [next(dropped), next(dropped)]
    assert loader.position == (0, 2)
    got += [*loader]
    with pytest.raises(RuntimeError, match="a newer one was made"):
        next(dropped)
    assert same(got, reference[:6])
    loader.close()


def test_setting_the_position_ends_the_iterator(toy: Samples, reference: list[dict[str, Any]]) -> None:
    loader = make(toy)
    running = iter(loader)
    next(running)
    loader.set_position(1, 2)
    with pytest.raises(RuntimeError, match="the position set"):
        next(running)
    assert same([*loader], reference[8:])


def test_going_to_a_position_reads_no_image(toy: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(path: str, box: Any = None) -> torch.Tensor:
        read.append(path)
        return read_image(path, box)

    monkeypatch.setattr("fastreid_lite.data.reader.read_image", counting)
    loader = make(toy)
    loader.set_position(3, 4)
    assert len([*loader]) == 2 and len(read) == 2 * 4


@pytest.mark.parametrize("world_size", [2, 1])
def test_the_shares_of_the_processes_make_up_the_same_batches(
    toy: Samples, reference: list[dict[str, Any]], world_size: int
) -> None:
    shares = [[*make(toy, rank=rank, world_size=world_size)] for rank in range(world_size)]
    for number, batch in enumerate(reference[:6]):
        for key in ("images", "indices", "targets"):
            assert torch.equal(torch.cat([share[number][key] for share in shares]), batch[key])


def test_iterating_touches_no_global_random_state(toy: Samples) -> None:
    def states() -> tuple[Any, ...]:
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index, union-attr]

    before = states()
    for workers in (0, 2):
        loader = make(toy, num_workers=workers)
        two_epochs(loader)
        loader.close()
    [*TestLoader(toy, PREPROCESSOR, batch_size=5)]
    assert states() == before


def test_augmentation_depends_on_seed_epoch_and_position(toy: Samples) -> None:
    one = Samples(toy.paths[:1] * 8, {"pid": np.zeros(8, dtype=np.int64)})
    loaders = [
        TrainLoader(one, TrainingSampler(one.pids, batch_size=4, seed=0), PREPROCESSOR, batch_size=4, seed=seed)
        for seed in (0, 1)
    ]
    images = [
        image.numpy().tobytes() for loader in loaders for batch in two_epochs(loader) for image in batch["images"]
    ]
    assert len(set(images)) > 25 and len(images) == 32


def test_boxes_and_further_columns_reach_the_batch(toy: Samples) -> None:
    boxes = np.tile([1, 2, 5, 9], (24, 1))
    samples = Samples(toy.paths, {"pid": toy.pids, "clothes": np.arange(24) % 3}, boxes)
    plain = Preprocessor(None, None)
    sampler = TrainingSampler(samples.pids, batch_size=4, seed=0)
    batch = next(iter(TrainLoader(samples, sampler, plain, batch_size=4, seed=0)))
    assert "camids" not in batch and batch["images"].shape == (4, 3, 9, 5)
    assert torch.equal(batch["clothes"], batch["indices"] % 3)
    first = int(batch["indices"][0])
    assert torch.equal(batch["images"][0], read_image(samples.paths[first], boxes[first]))


def spoil(samples: Samples, indices: list[int], text: str = "not an image") -> None:
    for index in indices:
        Path(samples.paths[index]).write_text(text)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_an_error_with_its_path(make_images: Callable[..., Samples], workers: int) -> None:
    samples = make_images(identities=4, images=4)
    spoil(samples, [5])
    start = time.monotonic()
    for loader in (
        make(samples, num_workers=workers),
        TestLoader(samples, PREPROCESSOR, batch_size=4, num_workers=workers),
    ):
        with pytest.raises(ImageReadError, match=r"^cannot read image '.*0001_c2s1_000001.jpg'"):
            two_epochs(loader)
        if isinstance(loader, TrainLoader):
            loader.close()
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world_size", [1, 2])
def test_broken_images_are_skipped_counted_and_replaced_within_their_identity(
    make_images: Callable[..., Samples], workers: int, world_size: int, caplog: pytest.LogCaptureFixture
) -> None:
    samples = make_images(identities=4, images=4)
    clean = two_epochs(make(samples))
    spoil(samples, [5, 7])
    loaders = [
        make(samples, num_workers=workers, on_broken_image="skip", rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    shares = [two_epochs(loader) for loader in loaders]
    for number, batch in enumerate(clean):
        indices = torch.cat([share[number]["indices"] for share in shares])
        assert torch.equal(torch.cat([share[number]["targets"] for share in shares]), batch["targets"])
        assert indices.tolist() == [{5: 6, 7: 4}.get(index, index) for index in batch["indices"].tolist()]
        assert set(shares[0][number]) == set(batch)
    broken = sum(int(index in (5, 7)) for batch in clean for index in batch["indices"].tolist())
    assert sum(loader.skipped for loader in loaders) == broken > 2
    assert set().union(*(loader.skipped_paths for loader in loaders)) == {samples.paths[5], samples.paths[7]}
    if world_size == 1:
        assert caplog.text.count("skipped:") == 2
    for loader in loaders:
        loader.close()


def test_an_identity_without_a_good_image_is_replaced_by_the_next(make_images: Callable[..., Samples]) -> None:
    samples = make_images(identities=3, images=2)
    spoil(samples, [4, 5])
    loader = make(samples, on_broken_image="skip")
    for batch in [batch for _ in range(6) for batch in loader]:
        assert not {4, 5} & set(batch["indices"].tolist())
        assert len(batch["indices"]) == 4
    assert loader.skipped > 0


def test_a_set_without_a_good_image_is_an_error_in_bounded_time(make_images: Callable[..., Samples]) -> None:
    samples = make_images(identities=3, images=2)
    spoil(samples, list(range(6)))
    with pytest.raises(ImageReadError, match="too many broken images to skip"):
        next(iter(make(samples, on_broken_image="skip")))


def test_transforms_that_leave_different_sizes_are_an_error_with_the_path(make_images: Callable[..., Samples]) -> None:
    from PIL import Image

    samples = make_images(identities=2, images=2)
    Image.new("RGB", (5, 5)).save(samples.paths[3])
    loader = TestLoader(samples, Preprocessor(None, None), batch_size=4)
    with pytest.raises(ValueError, match=r"000001.jpg' became \(3, 5, 5\) and the image before it.*\(3, 16, 8\)"):
        next(iter(loader))


def kill_yourself(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    return image


def test_a_killed_worker_is_a_clear_error(toy: Samples) -> None:
    sampler = TrainingSampler(toy.pids, batch_size=4, seed=0)
    deadly = Preprocessor((12, 6), (12, 6), after_resize=[kill_yourself])
    loader = TrainLoader(toy, sampler, deadly, batch_size=4, seed=0, num_workers=1)
    with pytest.raises(RuntimeError, match=r"a loader worker died .*DATALOADER.NUM_WORKERS"):
        next(iter(loader))


def test_workers_are_deaf_to_ctrl_c_and_use_one_thread(toy: Samples) -> None:
    sampler = TrainingSampler(toy.pids, batch_size=4, seed=0)
    loader = TrainLoader(
        toy, sampler, Preprocessor((12, 6), None, after_resize=[say_how]), batch_size=4, seed=0, num_workers=1
    )
    assert (next(iter(loader))["images"] == 11).all()
    loader.close()


def say_how(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return torch.full_like(image, 10 * deaf + torch.get_num_threads())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_evaluation_batches_have_fixed_boundaries_and_every_image_once(
    toy: Samples, workers: int, world_size: int
) -> None:
    shares = [
        TestLoader(toy, PREPROCESSOR, batch_size=5, num_workers=workers, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    batches = [batch for share in shares for batch in share]
    assert [len(share) for share in shares] == [len([*share]) for share in shares]
    assert [batch["indices"].tolist() for batch in batches] == [
        list(range(start, min(start + 5, 24))) for start in range(0, 24, 5)
    ]
    expected = torch.stack([PREPROCESSOR.test(read_image(path)) for path in toy.paths])
    assert torch.equal(torch.cat([batch["images"] for batch in batches]), expected)


def test_evaluation_of_nothing_gives_nothing(toy: Samples) -> None:
    loader = TestLoader(Samples.empty(), PREPROCESSOR, batch_size=5)
    assert len(loader) == 0 and [*loader] == []


def test_more_workers_than_cores_is_no_warning(toy: Samples) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = make(toy, num_workers=(os.cpu_count() or 1) + 1)
        next(iter(loader))
        loader.close()


def test_impossible_settings_are_refused(toy: Samples) -> None:
    with pytest.raises(ValueError, match="rank is 2 of world_size 2"):
        make(toy, rank=2, world_size=2)
    with pytest.raises(ValueError, match=r"num_workers is -1 \(DATALOADER.NUM_WORKERS\)"):
        make(toy, num_workers=-1)
    for factor in (0, -1):
        with pytest.raises(ValueError, match=rf"prefetch_factor is {factor} \(DATALOADER.PREFETCH_FACTOR\)"):
            make(toy, prefetch_factor=factor)
        with pytest.raises(ValueError, match=rf"prefetch_factor is {factor} \(DATALOADER.PREFETCH_FACTOR\)"):
            TestLoader(toy, PREPROCESSOR, batch_size=5, prefetch_factor=factor)
    with pytest.raises(ValueError, match=r"batch_size is 0 \(SOLVER.IMS_PER_BATCH\)"):
        sampler = TrainingSampler(toy.pids, batch_size=4, seed=0)
        TrainLoader(toy, sampler, PREPROCESSOR, batch_size=0, seed=0)
    with pytest.raises(ValueError, match="no multiple of the 3 processes"):
        make(toy, world_size=3)
    with pytest.raises(ValueError, match="on_broken_image is 'ignore', expected 'error' or 'skip'"):
        make(toy, on_broken_image="ignore")
    with pytest.raises(ValueError, match="the sampler makes batches of 4, the loader of 8"):
        sampler = TrainingSampler(toy.pids, batch_size=4, seed=0)
        TrainLoader(toy, sampler, PREPROCESSOR, batch_size=8, seed=0)
    with pytest.raises(ValueError, match=r"position \(0, 7\) does not exist"):
        make(toy).set_position(0, 7)
    with pytest.raises(ValueError, match=r"batch_size is 0 \(TEST.IMS_PER_BATCH\)"):
        TestLoader(toy, PREPROCESSOR, batch_size=0)
    with pytest.raises(ValueError, match="column 'images' has the name of another part"):
        TestLoader(Samples(("a",), {"pid": np.zeros(1), "images": np.zeros(1)}), PREPROCESSOR, batch_size=1)


def test_a_sampler_of_the_wrong_length_is_an_error(toy: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = make(toy)
    monkeypatch.setattr(loader.sampler, "epoch_indices", lambda epoch: np.arange(3))
    with pytest.raises(ValueError, match=r"epoch_indices gave shape \(3,\), expected \(24,\)"):
        next(iter(loader))
