from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from fastreid_lite.runtime import RUNTIME_REGISTRY, Runtime, get_runtime, register, resolve_device, to
from fastreid_lite.runtime import registry as registry_module
from fastreid_lite.runtime.devices import CPURuntime, CUDARuntime, XPURuntime


def has(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    monkeypatch.setattr(registry_module, "_available", lambda kind: kind == "cpu" or kind in kinds)


@pytest.fixture
def own_device() -> Iterator[type[Runtime]]:
    class MyRuntime(Runtime):
        def __init__(self, device: torch.device | str) -> None:
            super().__init__("cpu")
            self.asked_for = str(device)

    register("mydev", MyRuntime)
    yield MyRuntime
    del RUNTIME_REGISTRY._entries["mydev"]


@pytest.mark.parametrize(
    ("there", "expected"),
    [((), "cpu"), (("mps",), "mps"), (("mps", "xpu"), "xpu"), (("xpu", "cuda"), "cuda")],
)
def test_auto_takes_the_first_device_that_is_there(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], expected: str
) -> None:
    has(monkeypatch, *there)
    assert resolve_device("auto") == expected


def test_a_recipe_for_a_device_that_is_not_there_goes_on_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    has(monkeypatch)
    assert resolve_device("cuda:1") == "cpu"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "MODEL.DEVICE is 'cuda:1', which this machine does not have: using the CPU" in caplog.text


def test_an_unknown_device_is_told_the_known_ones() -> None:
    with pytest.raises(
        KeyError, match=r"unknown device 'cudo' \(MODEL.DEVICE\); did you mean 'cuda'\? Known: cpu, cuda"
    ):
        get_runtime("cudo")


def test_the_cpu_is_served_under_every_spelling() -> None:
    for device in ("cpu", "cpu:0", torch.device("cpu")):
        runtime = get_runtime(device)
        assert type(runtime) is CPURuntime and runtime.device.type == "cpu"


def test_denormal_numbers_are_flushed_on_the_cpu() -> None:
    try:
        get_runtime("cpu").prepare()
        assert (torch.tensor(1e-40) * 0.5).item() == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_a_batch_stays_as_it_is_on_the_cpu() -> None:
    batch = {"images": torch.zeros(1)}
    assert get_runtime("cpu").move_batch(batch) is batch


def test_a_device_of_ones_own_is_served_like_the_others(own_device: type[Runtime]) -> None:
    runtime = get_runtime("mydev:3")
    assert type(runtime) is own_device
    assert runtime.asked_for == "mydev:3"
    with pytest.raises(KeyError, match="the device 'mydev' is registered already"):
        register("mydev", CPURuntime)


def test_to_moves_modules_and_tensors(own_device: type[Runtime]) -> None:
    layer, tensor = nn.Linear(2, 2), torch.zeros(2)
    assert to(layer, "mydev") is layer
    assert to([tensor], "cpu")[0] is tensor


@pytest.mark.parametrize(("kind", "runtime"), [("cuda", CUDARuntime), ("xpu", XPURuntime)])
def test_a_device_without_a_number_is_the_one_of_the_local_rank(
    monkeypatch: pytest.MonkeyPatch, kind: str, runtime: type[Runtime]
) -> None:
    module = getattr(torch, kind)
    monkeypatch.setattr(module, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "5")
    assert str(runtime(kind).device) == f"{kind}:1"
    assert str(runtime(torch.device(kind)).device) == f"{kind}:1"
    assert str(runtime(f"{kind}:3").device) == f"{kind}:3"
    with pytest.raises(ValueError, match=f"MODEL.DEVICE is '{kind}:4', but this machine has {kind}:0 to {kind}:3"):
        runtime(f"{kind}:4")
    with pytest.raises(ValueError, match=f"MODEL.DEVICE is '{kind}:x', expected a device that torch knows"):
        runtime(f"{kind}:x")
    monkeypatch.setattr(module, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=f"but this machine has {kind}:0: use one that is there"):
        runtime(f"{kind}:1")


def test_what_a_gpu_means_by_auto() -> None:
    runtime = CUDARuntime("cuda:0")
    assert runtime.amp_dtype("auto") is torch.float16
    assert runtime.amp_dtype("bfloat16") is torch.bfloat16
    assert runtime.backend == "nccl" and runtime.asynchronous
