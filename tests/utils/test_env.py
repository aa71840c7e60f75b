from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from fastreid_lite.utils.env import collect_env, resolve_seed, seed_everything, set_deterministic, versions


@pytest.fixture(autouse=True)
def global_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    benchmark = torch.backends.cudnn.benchmark
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    set_deterministic(False)
    torch.backends.cudnn.benchmark = benchmark
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_a_seed_that_is_given_stays_and_a_negative_one_is_drawn() -> None:
    assert resolve_seed(0) == 0
    assert resolve_seed(7) == 7
    drawn = {resolve_seed(-1) for _ in range(5)}
    assert len(drawn) > 1
    assert all(0 <= seed < 2**31 for seed in drawn)


def test_drawing_a_seed_leaves_global_generators_alone() -> None:
    seed_everything(1)
    first = draw()
    seed_everything(1)
    resolve_seed(-1)
    assert draw() == first


def test_a_seed_fixes_all_global_generators_and_ranks_differ() -> None:
    seed_everything(3)
    first = draw()
    seed_everything(3)
    assert draw() == first
    seed_everything(3, rank=1)
    second = draw()
    assert all(a != b for a, b in zip(first, second))
    seed_everything(2**32 - 1, rank=1)


def test_a_run_without_determinism_does_not_pay_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *args, **kwargs: calls.append((args, kwargs)))
    set_deterministic(False)
    assert calls == []
    set_deterministic(True)
    assert calls == [((True,), {"warn_only": True})]
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    set_deterministic(False)
    assert calls[1:] == [((False,), {"warn_only": True})]


@pytest.mark.slow
def test_determinism_is_asked_for_and_taken_back() -> None:
    set_deterministic(True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert not torch.backends.cudnn.benchmark
    set_deterministic(False, cudnn_benchmark=True)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cudnn.benchmark


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="DETERMINISTIC True and CUDNN_BENCHMARK True contradict each other"):
        set_deterministic(True, cudnn_benchmark=True)
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_log_names_versions_machine_and_command() -> None:
    assert versions()["torch"] == torch.__version__
    assert all(isinstance(version, str) for version in versions().values())
    text = collect_env()
    assert f"numpy {np.__version__}" in text
    assert "CPUs" in text and "command: " in text
