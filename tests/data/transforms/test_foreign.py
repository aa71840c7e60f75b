from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from fastreid_lite.data.transforms import ForeignTransform

IMAGE = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 6, 4), dtype=np.uint8))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Draws:
    """Draws from every source that there is and writes the draws into the pixels."""

    def __init__(self) -> None:
        self.python = random.Random(1)
        self.parts = {"numpy": np.random.default_rng(1), "old": [np.random.RandomState(1)]}
        self.torch = torch.Generator().manual_seed(1)

    def __call__(self, image: Image.Image) -> np.ndarray:
        parts: dict[str, Any] = self.parts
        drawn = [
            random.random(),
            np.random.random(),
            float(torch.rand(())),
            self.python.random(),
            parts["numpy"].random(),
            parts["old"][0].random_sample(),
            float(torch.rand((), generator=self.torch)),
        ]
        pixels = np.zeros((1, len(drawn), 3), dtype=np.uint8)
        for place, value in enumerate(drawn):
            pixels[0, place] = [int(value * 256), int(value * 65536) % 256, int(value * 2**24) % 256]
        return pixels


def test_all_draws_of_a_foreign_transform_come_from_the_samples_generator() -> None:
    first, second = ForeignTransform(Draws()), ForeignTransform(Draws())
    one = first(IMAGE, generator(5))
    first(IMAGE, generator(6))
    random.seed(99)
    np.random.seed(99)
    second(IMAGE, generator(7))
    assert torch.equal(second(IMAGE, generator(5)), one)
    assert torch.equal(first(IMAGE, generator(5)), one)
    other = first(IMAGE, generator(6))
    assert (other != one).any(dim=0).all()  # every source has moved on
    assert len({tuple(column.tolist()) for column in one[:, 0].T}) == 7  # and no two give the same


def test_all_states_are_put_back_also_after_an_error() -> None:
    draws = Draws()

    def fails(image: Image.Image) -> Any:
        draws(image)
        raise KeyError("no")

    def states() -> tuple[Any, ...]:
        return (
            random.getstate(),
            np.random.get_state()[1].tolist(),  # type: ignore[index, union-attr]
            torch.get_rng_state().tolist(),
            draws.python.getstate(),
            draws.parts["numpy"].bit_generator.state,  # type: ignore[union-attr]
            draws.torch.get_state().tolist(),
        )

    before = states()
    ForeignTransform(draws)(IMAGE, generator(0))
    assert states() == before
    with pytest.raises(KeyError):
        ForeignTransform(fails)(IMAGE, generator(0))
    assert states() == before


def test_generators_in_closures_partials_and_bound_methods_are_found() -> None:
    own = np.random.default_rng(0)

    def closure(image: torch.Tensor) -> torch.Tensor:
        return torch.full((3, 1, 1), int(own.integers(256)), dtype=torch.uint8)

    def with_argument(image: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        return torch.full((3, 1, 1), int(rng.integers(256)), dtype=torch.uint8)

    class Holder:
        def __init__(self) -> None:
            self.itself = self
            self.rng = np.random.default_rng(0)

        def method(self, image: torch.Tensor) -> torch.Tensor:
            return with_argument(image, self.rng)

    for function in (closure, functools.partial(with_argument, rng=own), Holder().method):
        transform = ForeignTransform(function, takes="tensor")
        results = [[int(transform(IMAGE, generator(seed))[0, 0, 0]) for seed in range(20)] for _ in range(2)]
        assert results[0] == results[1] and len(set(results[0])) > 10


def test_generators_in_a_set_are_seeded_in_an_order_that_no_process_changes() -> None:
    class Jitter:
        def __init__(self, seed: int, place: int) -> None:
            self.rng, self.place = np.random.default_rng(seed), place

        def __hash__(self) -> int:
            return self.place  # where a set has it; for other objects the address in memory

        def __eq__(self, other: object) -> bool:
            return self is other

    class Several:
        def __init__(self, places: range) -> None:
            self.jitters = [Jitter(seed, place) for seed, place in enumerate(places)]

        def __call__(self, image: torch.Tensor) -> torch.Tensor:
            drawn = [int(jitter.rng.integers(256)) for jitter in self.jitters]
            return torch.tensor(drawn, dtype=torch.uint8).repeat(3, 1, 1)

    results = []
    for places in (range(4), range(3, -1, -1)):
        several = Several(places)
        several.__dict__ = {"pool": set(several.jitters), "jitters": several.jitters}
        several.__dict__.update(last=several.__dict__.pop("pool"))  # searched before the list
        transform = ForeignTransform(several, takes="tensor")
        results += [transform(IMAGE, generator(5)) for _ in range(2)]
    assert all(torch.equal(result, results[0]) for result in results)


def test_a_foreign_transform_may_take_and_return_images_arrays_and_tensors() -> None:
    def seen(image: Image.Image) -> Image.Image:
        assert isinstance(image, Image.Image) and image.mode == "RGB" and image.size == (4, 6)
        return image

    def array(image: Image.Image) -> np.ndarray:
        return np.array(image)

    def in_place(image: torch.Tensor) -> torch.Tensor:
        assert image.is_contiguous()
        return image.zero_()

    assert torch.equal(ForeignTransform(seen)(IMAGE, generator(0)), IMAGE)
    assert torch.equal(ForeignTransform(array)(IMAGE, generator(0)), IMAGE)
    grey = ForeignTransform(lambda image: image.convert("L"))(IMAGE, generator(0))
    assert grey.shape == (3, 6, 4) and torch.equal(grey[0], grey[2])
    before = IMAGE.clone()
    for image in (IMAGE, IMAGE.permute(1, 2, 0).contiguous().permute(2, 0, 1)):
        assert not ForeignTransform(in_place, takes="tensor")(image, generator(0)).any()
    assert torch.equal(IMAGE, before)


def test_what_is_no_image_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"returned Tensor \(3, 6, 4\) torch.float32; expected a PIL image"):
        ForeignTransform(lambda image: image.float(), takes="tensor")(IMAGE, generator(0))
    with pytest.raises(TypeError, match="returned NoneType"):
        ForeignTransform(lambda image: None)(IMAGE, generator(0))
    with pytest.raises(TypeError, match="function is 3, expected a callable"):
        ForeignTransform(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes is 'jpeg'"):
        ForeignTransform(lambda image: image, takes="jpeg")
