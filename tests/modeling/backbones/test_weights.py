from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fastreid_lite.checkpoint import CheckpointError
from fastreid_lite.modeling import build_backbone
from fastreid_lite.modeling.backbones.weights import cached_timm_weights, load_backbone_weights, read_state_dict


class Canary:
    """Makes a folder when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))


def saved(content: Any, folder: Path) -> Path:
    torch.save(content, folder / "weights.pth")
    return folder / "weights.pth"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"model": state, "epoch": 3},
        lambda state: {"state_dict": state},
        lambda state: {f"module.{name}": value for name, value in state.items()},
        lambda state: {"heads.weight": torch.ones(2), **{f"backbone.{name}": value for name, value in state.items()}},
    ],
    ids=["bare", "model", "state_dict", "module.", "backbone."],
)
def test_a_state_dict_is_found_in_what_holds_it(wrap: Callable[..., Any], network: nn.Module, tmp_path: Path) -> None:
    state = {name: torch.full_like(value, 2) for name, value in network.state_dict().items()}
    load_backbone_weights(network, saved(wrap(state), tmp_path))
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())


def test_a_safetensors_file_is_read(network: nn.Module, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    assert set(read_state_dict(tmp_path / "weights.safetensors")) == set(network.state_dict())


def test_names_missing_and_left_over_are_said(
    network: nn.Module, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = {**network.state_dict(), "fc.weight": torch.ones(2)}
    del state["1.bias"]
    with caplog.at_level("INFO"):
        load_backbone_weights(network, saved(state, tmp_path))
    assert "1 tensors keep their random values" in caplog.text and "1.bias" in caplog.text
    assert "are not used: fc.weight" in caplog.text


def test_a_file_without_one_matching_name_is_refused(network: nn.Module, tmp_path: Path) -> None:
    path = saved({"other": torch.ones(1)}, tmp_path)
    with pytest.raises(
        ValueError, match=r"no name in .* \(such as 'other'\) is one of Sequential \(such as '0.weight'\)"
    ):
        load_backbone_weights(network, path)


def test_another_shape_is_refused(network: nn.Module, tmp_path: Path) -> None:
    path = saved({"0.weight": torch.ones(5, 3, 1, 1)}, tmp_path)
    with pytest.raises(ValueError, match=r"'0.weight' .* has shape \(5, 3, 1, 1\), the backbone's is \(4, 3, 1, 1\)"):
        load_backbone_weights(network, path)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="PRETRAIN_PATH: there is no file 'nowhere.pth'"):
        read_state_dict("nowhere.pth")


@pytest.mark.parametrize(
    ("content", "message"), [({"epoch": 3}, r"has no weights .*found epoch \(int\)"), ([1, 2], "holds a list")]
)
def test_a_file_without_tensors_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"^MODEL.BACKBONE.PRETRAIN_PATH: .*weights.pth {message}"):
        read_state_dict(saved(content, tmp_path))


@pytest.mark.parametrize("kept", [0, 1, 200, -200])
@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_a_damaged_file_is_one_sentence(network: nn.Module, tmp_path: Path, kept: int, suffix: str) -> None:
    from safetensors.torch import save_file

    path = tmp_path / f"weights.{suffix}"
    (save_file if suffix == "safetensors" else torch.save)(network.state_dict(), path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"^MODEL.BACKBONE.PRETRAIN_PATH: .*(is empty|is damaged).*use another"):
        load_backbone_weights(network, path)


def test_a_child_that_is_called_as_a_wrappers_prefix_keeps_its_name(tmp_path: Path) -> None:
    network = nn.Sequential()
    network.add_module("module", nn.Linear(2, 2))
    state = {f"backbone.{name}": torch.full_like(value, 2) for name, value in network.state_dict().items()}
    for number, prefix in enumerate(("", "module.")):
        torch.save({prefix + name: value for name, value in state.items()}, tmp_path / f"{number}.pth")
        assert set(read_state_dict(tmp_path / f"{number}.pth", network.state_dict())) == set(network.state_dict())


def test_a_file_that_would_run_code_is_refused_and_runs_none(tmp_path: Path) -> None:
    path = saved({"weight": Canary(tmp_path / "canary")}, tmp_path)
    with pytest.raises(CheckpointError, match="PRETRAIN_PATH: .*reading such a file can run code in it"):
        read_state_dict(path)
    assert not (tmp_path / "canary").exists()


@pytest.fixture
def empty_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import huggingface_hub.file_download

    monkeypatch.setattr(huggingface_hub.file_download, "HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return tmp_path


@pytest.mark.parametrize("name", ["build_resnet_backbone", "timm/resnet18", "timm/vit_tiny_patch16_224"])
def test_weights_that_are_not_in_the_cache_stop_at_once_and_nothing_is_fetched(
    name: str, make_cfg: Callable[..., Any], empty_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.getaddrinfo", no_network)
    with pytest.raises(
        FileNotFoundError, match="cache has no weights for .*: set MODEL.BACKBONE.PRETRAIN_PATH .* False"
    ):
        build_backbone(make_cfg({"MODEL.BACKBONE.NAME": name, "MODEL.BACKBONE.PRETRAIN": True}))


def test_weights_in_the_cache_of_the_hub_are_used(make_cfg: Callable[..., Any], empty_caches: Path) -> None:
    import timm
    from safetensors.torch import save_file

    repository = empty_caches / "hub" / "models--timm--resnet18.tv_in1k"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    source = timm.create_model("resnet18")
    save_file(source.state_dict(), repository / "snapshots" / "abc" / "model.safetensors")
    for name in ("build_resnet_backbone", "timm/resnet18.tv_in1k"):
        backbone = build_backbone(make_cfg({"MODEL.BACKBONE.NAME": name, "MODEL.BACKBONE.PRETRAIN": True}))
        weight = next(backbone.parameters())
        assert torch.equal(weight, source.conv1.weight)


def test_weights_in_the_cache_of_torch_are_found(empty_caches: Path) -> None:
    from timm.models import get_pretrained_cfg

    url = get_pretrained_cfg("resnet18.tv_in1k").url
    path = empty_caches / "torch" / "hub" / "checkpoints" / url.rsplit("/", 1)[-1]
    path.parent.mkdir(parents=True)
    path.touch()
    assert cached_timm_weights("resnet18.tv_in1k") == path
