"""PROJECT.IMPORTS: packages outside the library add keys, and what they register counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastreid_lite.config import (
    ConfigKeyError,
    ConfigTypeError,
    ConfigValueError,
    get_cfg,
    import_projects,
    load_config,
)

Write = Callable[[str, str], Path]
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = """
from fastreid_lite.config import CfgNode

def add_config(cfg):
    cfg.PAPER = CfgNode({"WEIGHT": 0.5, "NAMES": ()})
    cfg.SOLVER.BASE_LR = 0.01
"""


@pytest.fixture(autouse=True)
def _clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0].startswith("paper_"):
            del sys.modules[name]


def test_a_package_beside_the_config_adds_its_keys_before_the_merge(write: Write) -> None:
    write("paper_a/__init__.py", PACKAGE)
    path = write("c.yml", "PROJECT: {IMPORTS: [paper_a]}\nPAPER: {WEIGHT: 2, NAMES: [x]}\n")
    cfg = load_config(path, ["PAPER.WEIGHT", "3"])
    assert (cfg.PAPER.WEIGHT, cfg.PAPER.NAMES, cfg.SOLVER.BASE_LR) == (3.0, ("x",), 0.01)
    assert cfg.PROJECT.IMPORTS == ("paper_a",)
    assert "PAPER" not in get_cfg()


def test_the_keys_of_a_package_have_types_and_near_names_too(write: Write) -> None:
    write("paper_a/__init__.py", PACKAGE)
    path = write("c.yml", "PROJECT: {IMPORTS: [paper_a]}\n")
    with pytest.raises(ConfigTypeError, match="PAPER.WEIGHT takes a float, not 'x', a str"):
        load_config(path, ["PAPER.WEIGHT", "x"])
    with pytest.raises(ConfigKeyError, match="unknown key PAPER.WEIGTH .*; did you mean PAPER.WEIGHT"):
        load_config(path, ["PAPER.WEIGTH", "1"])


def test_imports_are_found_in_a_base_and_on_the_command_line(write: Write) -> None:
    write("paper_a/__init__.py", PACKAGE)
    write("bases/base.yml", 'PROJECT:\n  IMPORTS: ("paper_a",)\nPAPER: {WEIGHT: 2}\n')
    assert load_config(write("top.yml", "_BASE_: bases/base.yml\n")).PAPER.WEIGHT == 2.0
    assert load_config(None, ["PAPER.WEIGHT=4", "PROJECT.IMPORTS=[paper_a]"]).PAPER.WEIGHT == 4.0


def test_a_package_is_found_above_the_config_up_to_the_top_of_the_project(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("project/pyproject.toml", "")
    write("project/paper_b/__init__.py", PACKAGE)
    write("paper_above/__init__.py", PACKAGE)
    path = write("project/configs/deep/c.yml", "PROJECT: {IMPORTS: [paper_b]}\n")
    beyond = write("project/configs/deep/d.yml", "PROJECT: {IMPORTS: [paper_above]}\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_config(path).PAPER.WEIGHT == 0.5
    with pytest.raises(ConfigValueError, match="cannot import 'paper_above'"):
        load_config(beyond)
    assert load_config(beyond, search_path=[tmp_path]).PAPER.WEIGHT == 0.5


def test_a_package_of_the_project_that_a_base_belongs_to_is_found(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("theirs/paper_c.py", PACKAGE)
    write("theirs/configs/base.yml", "PROJECT: {IMPORTS: [paper_c]}\n")
    path = write("mine/a/b/c/d/top.yml", "_BASE_: ../../../../../theirs/configs/base.yml\n")
    monkeypatch.chdir(path.parent)
    assert load_config(path).PAPER.WEIGHT == 0.5


def test_what_python_finds_itself_goes_first(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("first/paper_d/__init__.py", PACKAGE.replace("0.5", "7.0"))
    write("paper_d/__init__.py", PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    before = list(sys.path)
    assert load_config(write("c.yml", "PROJECT: {IMPORTS: [paper_d]}\n")).PAPER.WEIGHT == 7.0
    assert sys.path == before


def test_pythonpath_is_enough_in_a_new_process(write: Write, tmp_path: Path) -> None:
    write("examples/paper_e/__init__.py", PACKAGE)
    path = write("configs/c.yml", "PROJECT: {IMPORTS: [paper_e]}\n")
    code = f"from fastreid_lite.config import load_config; assert load_config({str(path)!r}).PAPER.WEIGHT == 0.5"
    environment = {"PYTHONPATH": f"{tmp_path / 'examples'}:{ROOT}"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/", env=environment)


def test_a_package_without_keys_is_only_imported_and_each_once(write: Write) -> None:
    write("paper_f/__init__.py", "registered = []\ndef add_config(cfg): registered.append(cfg)\n")
    write("paper_g/sub.py", "loaded = True\n")
    write("paper_g/__init__.py", "")
    cfg = load_config(write("c.yml", "PROJECT: {IMPORTS: [paper_f, paper_g.sub, paper_f]}\n"))
    assert sys.modules["paper_f"].registered == [cfg]
    assert sys.modules["paper_g.sub"].loaded
    (module,) = import_projects(["paper_f"])
    assert len(module.registered) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module_here\n", r"ModuleNotFoundError: No module named 'no_such_module_here' \(.*line 1\)$"),
        ("x = 1\nraise RuntimeError('two\\nlines')\n", r"RuntimeError: two lines \(.*paper_h.__init__.py, line 2\)$"),
        ("def f(:\n", r"SyntaxError: .*"),
    ],
)
def test_an_import_that_fails_is_one_sentence(text: str, reason: str, write: Write) -> None:
    write("paper_h/__init__.py", text)
    path = write("c.yml", "A: 1\nPROJECT:\n  IMPORTS: [paper_h]\n")
    with pytest.raises(
        ConfigValueError, match=r"PROJECT.IMPORTS: cannot import 'paper_h' \(c.yml, line 3\): " + reason
    ):
        load_config(path)


def test_a_package_that_is_nowhere_is_named_with_the_folders_searched(write: Write, tmp_path: Path) -> None:
    path = write("c.yml", "PROJECT: {IMPORTS: [paper_nowhere]}\n")
    with pytest.raises(ConfigValueError, match="cannot import 'paper_nowhere' .*neither on PYTHONPATH nor in") as error:
        load_config(path)
    assert str(tmp_path) in str(error.value)


def test_a_folder_without_init_is_no_package(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("paper_i/data.txt", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigValueError, match="'paper_i' .* is a folder without __init__.py"):
        load_config(write("c.yml", "PROJECT: {IMPORTS: [paper_i]}\n"))


def test_a_path_is_no_package(write: Write) -> None:
    with pytest.raises(ConfigValueError, match="takes names of packages such as my_paper, not 'examples/my_paper'"):
        load_config(None, ["PROJECT.IMPORTS", "[examples/my_paper]"])
    with pytest.raises(ConfigTypeError, match=r"PROJECT.IMPORTS takes a tuple of strs, not 'x', .*; write \[x\]"):
        load_config(None, ["PROJECT.IMPORTS", "x"])


def test_an_add_config_that_fails_is_one_sentence(write: Write) -> None:
    write("paper_j/__init__.py", "def add_config(cfg):\n    cfg.NOPE.KEY = 1\n")
    with pytest.raises(ConfigValueError, match="add_config of 'paper_j' failed .*AttributeError: NOPE .*line 2"):
        load_config(write("c.yml", "PROJECT: {IMPORTS: [paper_j]}\n"))


def test_without_the_import_the_keys_of_a_project_are_unknown(write: Write) -> None:
    with pytest.raises(ConfigKeyError, match=r"unknown key PAPER.WEIGHT \(c.yml, line 1\)"):
        load_config(write("c.yml", "PAPER: {WEIGHT: 1}\n"))
