from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fastreid_lite.checkpoint import load_checkpoint, to_plain


def loaded(state: Any, path: Path) -> Any:
    torch.save(to_plain(state), path)
    return torch.load(path)


def test_everything_that_a_run_keeps_comes_back_under_the_guard(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "random": {"python": random.Random(1).getstate(), "torch": torch.get_rng_state()},
        "metric": 0.5,
        "names": ("a", b"b", None, True, 3),
        1: OrderedDict(a=[1.5]),
    }
    back = loaded(state, tmp_path / "state.pth")
    assert back["random"]["python"] == state["random"]["python"]  # type: ignore[index]
    assert back["names"] == state["names"]
    assert type(back[1]) is OrderedDict
    assert vars(back["model"]) == vars(model.state_dict()) != {}
    model.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.float64(0.9), "numpy.float64"),
        (np.zeros(2), "numpy.ndarray"),
        (np.int64(3), "numpy.int64"),
        (defaultdict(int), "collections.defaultdict"),
        (Counter("ab"), "collections.Counter"),
        ({1, 2}, "set"),
        (nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (torch.Size([2]), "torch.Size"),
        (Path("a"), "pathlib"),
    ],
)
def test_what_would_not_load_is_refused_by_its_key_path(value: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"the checkpoint has a {kind}.* at best\.list\[1\]\.metric, which would not"):
        to_plain({"best": {"list": [0, {"metric": value}]}})


def test_the_advice_fits_the_value() -> None:
    with pytest.raises(TypeError, match="at metric, .*; store float"):
        to_plain({"metric": np.float64(1)})
    with pytest.raises(TypeError, match="at its root, .*; store its state_dict"):
        to_plain(nn.Linear(1, 1))
    with pytest.raises(TypeError, match="a numpy.int64 at state, .* as a key; use a str, an int"):
        to_plain({"state": {np.int64(1): 1}})


def test_tensor_subclasses_are_refused() -> None:
    class Marked(torch.Tensor):
        pass

    with pytest.raises(TypeError, match=r"Marked at a, .*; store a torch.Tensor of its values"):
        to_plain({"a": torch.zeros(2).as_subclass(Marked)})


def test_tensors_are_detached_and_their_containers_copied() -> None:
    weight = nn.Parameter(torch.ones(2))
    state = {"list": [weight]}
    plain = to_plain(state)
    assert type(plain["list"][0]) is torch.Tensor
    assert not plain["list"][0].requires_grad
    assert plain["list"] is not state["list"]


def test_a_view_does_not_bring_its_whole_storage_along(tmp_path: Path) -> None:
    table = torch.randn(100_000)
    back = loaded({"row": table[10:20], "steps": table[::50_000]}, tmp_path / "view.pth")
    assert (tmp_path / "view.pth").stat().st_size < 10_000
    assert torch.equal(back["row"], table[10:20])
    assert torch.equal(back["steps"], table[::50_000])


def test_tied_tensors_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    weight = torch.randn(10_000)
    for first, second in ((weight, weight), (weight[:5000], weight[:5000])):
        back = loaded({"a": first, "b": second}, tmp_path / "tied.pth")
        assert (tmp_path / "tied.pth").stat().st_size < first.numel() * 4 + 5000
        assert back["a"].data_ptr() == back["b"].data_ptr()


def test_tensors_of_every_kind_keep_their_values(tmp_path: Path) -> None:
    tensors = {
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "turned": torch.arange(6).reshape(2, 3).t(),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "sparse": torch.eye(3).to_sparse(),
    }
    torch.save(to_plain(tensors), tmp_path / "kinds.pth")
    back = load_checkpoint(tmp_path / "kinds.pth")
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name].to_dense(), tensor.to_dense()), name
