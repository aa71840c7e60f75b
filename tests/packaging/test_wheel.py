from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.toy_run import ROOT


def _why_no_wheel() -> str | None:
    if importlib.util.find_spec("pip") is None or importlib.util.find_spec("setuptools") is None:
        return "pip or setuptools is not installed"
    # From this version on it builds wheels by itself.
    own = tuple(map(int, version("setuptools").split(".")[:2])) >= (70, 1)
    return None if own or importlib.util.find_spec("wheel") is not None else "this setuptools needs wheel"


def call(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(_why_no_wheel() is not None, reason=str(_why_no_wheel()))
def test_the_installed_command_runs_outside_of_the_repository(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    shutil.copytree(ROOT / "fastreid_lite", source / "fastreid_lite", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    install = ["install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = call([sys.executable, "-m", "pip", *install, "--target", str(site), str(source)], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "fastreid_lite" / "py.typed").is_file()
    modules = [path.relative_to(ROOT) for path in (ROOT / "fastreid_lite").rglob("*.py")]
    assert [str(path) for path in modules if not (site / path).is_file()] == []

    where = call(
        [sys.executable, "-c", "import fastreid_lite; print(fastreid_lite.__file__)"], tmp_path, PYTHONPATH=str(site)
    )
    assert where.stdout.strip() == str(site / "fastreid_lite" / "__init__.py"), where.stdout + where.stderr
    command = str(site / "bin" / "fastreid-lite-train")
    shown = call([command, "--help"], tmp_path, PYTHONPATH=str(site))
    assert shown.returncode == 0, shown.stderr
    assert "--config-file" in shown.stdout
    wrong = call([command, "SOLVER.BASE_RL", "1"], tmp_path, PYTHONPATH=str(site))
    assert wrong.returncode == 2 and "fastreid-lite-train: error: " in wrong.stderr
