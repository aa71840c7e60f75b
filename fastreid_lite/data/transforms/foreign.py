"""Transforms from elsewhere, which draw from global random states or from generators of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from PIL import Image

_TAKES = ("pil", "tensor")


class ForeignTransform:
    """Make a plain callable a pure transform: it runs in a fork of all random states, seeded for this sample.

    Before the call, the global states of ``random``, ``numpy.random`` and torch (CPU), and every generator object found
    in the callable (its attributes, closures, bound arguments, and those of what they hold), are set from the sample's
    generator; after the call all are put back. So what it draws depends on (seed, epoch, position) alone. What it keeps
    besides, such as a pool of earlier images, cannot be helped: such a transform depends on its worker's past.

    Args:
        function: called with the image alone; returns a PIL image, a (H, W, 3) uint8 array or a (3, H, W) uint8 tensor.
        takes: "pil" (an RGB image) or "tensor" ((3, H, W) uint8, contiguous).
    """

    def __init__(self, function: Callable[[Any], Any], *, takes: str = "pil") -> None:
        if not callable(function):
            raise TypeError(f"function is {function!r}, expected a callable that takes an image")
        if takes not in _TAKES:
            raise ValueError(f"takes is {takes!r}, expected one of {_TAKES}")
        self.function = function
        self.takes = takes

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        seed = int(torch.randint(0, 2**63 - 1, (), generator=generator))
        given: Any = image.contiguous() if image.is_contiguous() else image.clone(memory_format=torch.contiguous_format)
        if self.takes == "pil":
            given = Image.fromarray(np.ascontiguousarray(image.permute(1, 2, 0).numpy()))
        elif given is image:
            given = image.clone()  # it may work in place
        with _seeded(seed, self.function):
            result = self.function(given)
        return _as_tensor(result, self.function)

    def __repr__(self) -> str:
        return f"ForeignTransform({self.function!r}, takes={self.takes!r})"


def _as_tensor(result: Any, function: object) -> torch.Tensor:
    """(3, H, W) uint8 from whatever a foreign transform returned."""
    if isinstance(result, Image.Image):
        result = np.array(result.convert("RGB"))
    if isinstance(result, np.ndarray) and result.dtype == np.uint8 and result.ndim == 3 and result.shape[2] == 3:
        return torch.from_numpy(np.ascontiguousarray(result)).permute(2, 0, 1)
    if isinstance(result, torch.Tensor) and result.dtype == torch.uint8 and result.ndim == 3 and result.shape[0] == 3:
        return result
    what = f"{type(result).__name__} {tuple(getattr(result, 'shape', ()))} {getattr(result, 'dtype', '')}".strip()
    raise TypeError(
        f"the transform {function!r} returned {what}; expected a PIL image, a (H, W, 3) uint8 array "
        f"or a (3, H, W) uint8 tensor"
    )


@contextmanager
def _seeded(seed: int, function: object) -> Iterator[None]:
    """All states that ``function`` may draw from, seeded; put back at the end, also after an error."""
    python_state, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    owned = list(_generators(function))
    states = [_state(generator) for generator in owned]
    try:
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)
        # Not torch.manual_seed: that would seed the accelerators as well.
        torch.default_generator.manual_seed(seed)
        for number, generator in enumerate(owned):
            _reseed(generator, seed + number + 1)
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        for generator, state in zip(owned, states):
            _restore(generator, state)


def _generators(root: object) -> Iterator[Any]:
    """Generator objects reachable from a callable, each once, in a fixed order."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (str, bytes, int, float, type, np.ndarray, torch.Tensor)):
            continue
        seen.add(id(thing))
        if isinstance(thing, kinds):
            yield thing
        else:
            waiting.extend(_held(thing))


def _held(thing: object) -> list[object]:
    """What a callable or container holds directly; modules and their globals are not searched."""
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple)):
        return list(thing)
    if isinstance(thing, (set, frozenset)):
        return sorted(thing, key=_likeness)  # the order of a set is another in each process
    held = list(getattr(thing, "__dict__", {}).values()) if not _is_module(thing) else []
    held += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or () if _is_filled(cell)]
    held += [getattr(thing, name, None) for name in ("__self__", "func", "args", "keywords", "__defaults__")]
    return held


def _likeness(thing: object) -> str:
    """A text that is the same in every process: the type of ``thing`` and the states of the generators in it."""
    states = [_state(generator) for generator in _generators(thing)]
    listed = [state.tolist() if isinstance(state, torch.Tensor) else state for state in states]
    return f"{type(thing).__module__}.{type(thing).__qualname__} {listed!r}"


def _is_module(thing: object) -> bool:
    return type(thing).__name__ == "module"


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name of the function around, not yet bound
        return False


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state()


def _restore(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _reseed(generator: Any, seed: int) -> None:
    if isinstance(generator, random.Random):
        generator.seed(seed)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(seed).state
    elif isinstance(generator, np.random.RandomState):
        generator.seed(seed & 0xFFFFFFFF)
    else:
        generator.manual_seed(seed)
