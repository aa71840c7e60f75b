from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.toy_run import PROJECTS, run_tool, toy_opts, write_toy_market

# A project that notes each attempt to reach the network, and lets none through.
NO_NETWORK = """
import os, socket

def refuse(*arguments, **options):
    open(os.environ["ATTEMPTS"], "a").write("one\\n")
    raise OSError("no network here")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
"""


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_market(tmp_path_factory.mktemp("toy"))


@pytest.mark.parametrize("backbone", ["build_resnet_backbone", "build_osnet_backbone", "timm/resnet18"])
def test_pretrained_weights_that_are_nowhere_are_one_line_and_no_attempt_to_fetch_them(
    market: Path, tmp_path: Path, backbone: str
) -> None:
    (tmp_path / "no_network.py").write_text(NO_NETWORK)
    attempts, cache = tmp_path / "attempts", str(tmp_path / "cache")
    depth = "x1_0" if "osnet" in backbone else "50x"
    more = {"MODEL__BACKBONE__NAME": backbone, "MODEL__BACKBONE__DEPTH": depth, "MODEL__BACKBONE__PRETRAIN": "True"}
    opts = toy_opts(market, tmp_path / "out", PROJECT__IMPORTS="[no_network]", **more)
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PROJECTS}", "ATTEMPTS": str(attempts)}
    done = run_tool("train_net.py", *opts, **environment, HF_HOME=cache, HF_HUB_CACHE=cache, TORCH_HOME=cache)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "MODEL.BACKBONE.PRETRAIN" in line
    assert not attempts.exists()
    assert not list((tmp_path / "out").glob("*.pth"))
