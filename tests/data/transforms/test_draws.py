from __future__ import annotations

import numpy as np
import pytest
import torch

from fastreid_lite.data import transforms
from fastreid_lite.data.transforms import (
    AugMix,
    AutoAugment,
    ColorJitter,
    PadAndCrop,
    RandomAffine,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Transform,
    sample_seed,
)

ALL = [
    PadAndCrop(5),
    PadAndCrop(5, "reflect"),
    RandomHorizontalFlip(0.5),
    RandomErasing(0.5),
    ColorJitter(0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.1),
    RandomAffine(),
    RandomResizedCrop((32, 16)),
    AutoAugment(),
    AugMix(),
]


def test_seeds_differ_between_runs_epochs_and_positions_also_in_the_32_bits_that_torch_uses() -> None:
    seeds = [sample_seed(seed, epoch, position) for seed in range(4) for epoch in range(10) for position in range(1000)]
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert len(set(seeds)) == len(seeds)
    # 40,000 numbers out of 2**32 have 0.2 pairs of equals on average.
    assert len({seed & 0xFFFFFFFF for seed in seeds}) > len(seeds) - 5
    ones = np.unpackbits(np.array(seeds, dtype=np.uint64).view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.002


def test_the_seed_of_a_sample_never_changes() -> None:
    """A run that is resumed with a newer version of the library goes on with the same augmentation."""
    assert (sample_seed(0, 0, 0), sample_seed(1, 2, 3)) == (2558736989570252433, 7702586659592502839)


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_a_transform_is_a_function_of_image_and_generator_and_changes_neither_its_input_nor_global_states(
    transform: Transform,
) -> None:
    image = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (3, 32, 16), dtype=np.uint8))
    before = image.clone()
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    generator = torch.Generator()
    for seed in range(20):
        first = transform(image, generator.manual_seed(seed))
        again = transform(image.permute(1, 2, 0).contiguous().permute(2, 0, 1), torch.Generator().manual_seed(seed))
        assert first.dtype == torch.uint8 and first.shape == (3, 32, 16)
        assert torch.equal(first, again)
        assert torch.equal(image, before)
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all()  # type: ignore[index]


def test_every_name_that_the_package_lists_is_there() -> None:
    for name in transforms.__all__:
        assert getattr(transforms, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = transforms.Nothing
