from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from fastreid_lite.runtime import Runtime

Pair = namedtuple("Pair", "left right")


def devices(value: Any) -> list[str]:
    """The device of every tensor in ``value``, by a loop of its own."""
    if isinstance(value, torch.Tensor):
        return [value.device.type]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [device for item in items for device in devices(item)]


def test_tensors_are_moved_in_every_kind_of_container_and_all_else_stays() -> None:
    tensor = torch.zeros(2)
    batch = {
        "images": tensor,
        "img_paths": ["a", "b"],
        "pair": Pair(tensor, 3),
        "nested": OrderedDict(x=[tensor, (tensor, None)], size=torch.Size([1, 2])),
        "text": "cuda",
    }
    moved = Runtime("meta").move_tensors(batch)
    assert devices(moved) == ["meta"] * 4
    assert devices(batch) == ["cpu"] * 4
    assert moved["img_paths"] == ["a", "b"] and moved["text"] == "cuda"
    assert type(moved["pair"]) is Pair and moved["pair"].right == 3
    assert type(moved["nested"]["x"][1]) is tuple and moved["nested"]["size"] == (1, 2)


def test_what_can_move_itself_is_asked_to() -> None:
    class Instances:
        def __init__(self, device: str) -> None:
            self.device = device

        def to(self, device: torch.device) -> Instances:
            return Instances(device.type)

    packed = pack_sequence([torch.zeros(3), torch.zeros(2)])
    moved = Runtime("meta").move_tensors([Instances("cpu"), Instances, packed])
    assert moved[0].device == "meta"
    assert moved[1] is Instances
    assert moved[2].data.device.type == "meta" and moved[2].batch_sizes.device.type == "cpu"


def test_a_copy_to_the_host_is_waited_for() -> None:
    class Watched(torch.Tensor):
        asked: list[bool] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__name__", "") == "to":
                cls.asked.append((kwargs or {}).get("non_blocking", False))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Far(Watched):
        @property
        def is_cpu(self) -> bool:  # type: ignore[override]
            return False

    runtime = Runtime("cpu")
    runtime.move_tensors(torch.zeros(1).as_subclass(Watched))
    runtime.move_tensors(torch.zeros(1).as_subclass(Far))
    assert Watched.asked == [True, False]


def test_a_module_is_moved_in_place_with_its_buffers() -> None:
    module = nn.BatchNorm1d(2)
    assert Runtime("meta").move_module(module) is module
    assert {tensor.device.type for tensor in [*module.parameters(), *module.buffers()]} == {"meta"}


def test_the_words_of_the_config_mean_types() -> None:
    runtime = Runtime("cpu")
    assert runtime.amp_dtype() is runtime.amp_dtype("bfloat16") is torch.bfloat16
    assert runtime.amp_dtype("float16") is torch.float16
    with pytest.raises(ValueError, match="SOLVER.AMP.DTYPE is 'fp8', expected one of auto, float16, bfloat16"):
        runtime.amp_dtype("fp8")


def test_autocast_casts_and_none_does_not() -> None:
    runtime, layer = Runtime("cpu"), nn.Linear(2, 2)
    with runtime.autocast(torch.bfloat16):
        assert layer(torch.zeros(1, 2)).dtype is torch.bfloat16
    for _ in range(2):
        with runtime.autocast(None):
            assert layer(torch.zeros(1, 2)).dtype is torch.float32


def test_only_float16_has_a_scaler() -> None:
    runtime = Runtime("cpu")
    scaler = runtime.make_scaler(torch.float16)
    assert scaler is not None and scaler.is_enabled()
    assert runtime.make_scaler(torch.bfloat16) is runtime.make_scaler(None) is None


def test_a_device_that_torch_does_not_know_is_refused() -> None:
    for name in ("mydev", "cpu:x"):
        with pytest.raises(ValueError, match=f"MODEL.DEVICE is '{name}', expected a device that torch knows"):
            Runtime(name)


def test_the_defaults_do_nothing() -> None:
    runtime = Runtime("cpu")
    runtime.prepare()
    runtime.synchronize()
    assert runtime.peak_memory() is None
    assert runtime.backend == "gloo" and not runtime.asynchronous
