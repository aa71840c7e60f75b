"""The rules of the house, held by reading the source: floors, doors, and what is written in one place only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "fastreid_lite"
Found = Iterator[tuple[int, str]]
Rule = Callable[[str, ast.Module], Found]

FLOORS = {
    **{"utils": 1, "config": 2, "runtime": 2, "storage": 2, "checkpoint": 2},
    **dict.fromkeys(("metrics", "data", "modeling", "solver", "evaluation", "engine"), 3),
    **{"engine.defaults": 4, "compat": 4},
}
OUTSIDE = ("tools", "examples", "benchmarks", "tests")
HEAVY = {"torch", "torchvision", "timm", "matplotlib", "tensorboard"}
DEVICES = {"cuda", "mps", "xpu"}
DOORS = re.compile(r"from_config|\w+_from_config|_?build(_\w+)?|add_config")
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 300, 60


def part_and_floor(module: str) -> tuple[str, int]:
    """The part of the house that a dotted module name stands in, and its floor; the entrance stands above all."""
    root, _, inside = module.partition(".")
    if root in OUTSIDE:
        return root, 5
    if inside.startswith("engine.default"):
        return "engine.defaults", FLOORS["engine.defaults"]
    part = inside.partition(".")[0]
    return part, FLOORS.get(part, 5 if part else 0)


def imported(path: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The dotted names that a file imports, relative ones resolved; each name of ``from m import n`` as ``m.n``."""
    package = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            yield from ((node.lineno, str(a.value)) for a in node.args[:1] if isinstance(a, ast.Constant))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def called(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Every call with the dotted name of what is called."""
    return ((node, ast.unparse(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call))


def imports_point_down(path: str, tree: ast.Module) -> Found:
    own, floor = part_and_floor(path.removesuffix("/__init__.py").removesuffix(".py").replace("/", "."))
    for line, name in imported(path, tree):
        if name.partition(".")[0] not in (PACKAGE, *OUTSIDE) or floor == 5:
            continue
        part, target = part_and_floor(name)
        if part != own and target >= floor:
            what = f"{own or PACKAGE} (floor {floor}) imports {name} (floor {target})"
            yield (
                line,
                f"{what}: imports point down only; take it as an argument, or join the two in engine/defaults.py",
            )


def processes_speak_in_comm_only(path: str, tree: ast.Module) -> Found:
    if path in (f"{PACKAGE}/utils/comm.py", f"{PACKAGE}/engine/launch.py"):
        return
    lines = {line for line, name in imported(path, tree) if name.startswith("torch.distributed")}
    lines |= {node.lineno for node in attributes(tree) if ast.unparse(node) == "torch.distributed"}
    for line in sorted(lines):
        yield line, "torch.distributed is spoken in utils/comm.py and engine/launch.py only: use utils.comm"


def devices_are_named_in_runtime_only(path: str, tree: ast.Module) -> Found:
    if path.startswith((f"{PACKAGE}/runtime/", f"{PACKAGE}/config/")):
        return
    words = [(node.lineno, node.attr) for node in attributes(tree)]
    words += [(node.lineno, str(node.value)) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for line, word in words:
        if word.partition(":")[0] in DEVICES and " " not in word:
            yield line, f"{word!r} is the name of a device, known in runtime/ only: ask the Runtime instead"


def config_stops_at_the_door(path: str, tree: ast.Module) -> Found:
    stem = Path(path).stem
    if path.startswith((f"{PACKAGE}/config/", f"{PACKAGE}/engine/default")) or path.count("/") == 1:
        return

    def visit(node: Any, inside: bool) -> Found:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = inside or bool(DOORS.fullmatch(node.name))
        named = isinstance(node, ast.Name) and node.id == "cfg" or isinstance(node, ast.arg) and node.arg == "cfg"
        if named and not inside:
            yield node.lineno, "cfg is read in from_config and build_* functions only: hand over what is needed"
        if isinstance(node, ast.Attribute) and node.attr in ("cfg", "_cfg") and isinstance(node.ctx, ast.Store):
            yield node.lineno, "an object keeps a cfg: keep the values that it needs"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(tree, bool(DOORS.fullmatch(stem)))


def starting_is_quick(path: str, tree: ast.Module) -> Found:
    if not path.startswith(f"{PACKAGE}/config/") and not path.endswith("/__init__.py"):
        return
    statements = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for line, name in imported(path, ast.Module([s for s in statements if not for_types(s)], [])):
        if name.partition(".")[0] in HEAVY:
            yield line, f"{name} takes long to import: import it in the function that needs it, or export lazily"


def files_and_functions_are_short(path: str, tree: ast.Module) -> Found:
    last = max((node.end_lineno or 0 for node in tree.body), default=0)
    if last > MOST_LINES:
        yield last, f"the file has {last} lines, at most {MOST_LINES}: split it by idea"
    for function in functions(tree):
        # What a reader has to follow: arguments and body. A long docstring is no fault.
        documented = function.body[0] if ast.get_docstring(function) else None
        told = (documented.end_lineno or 0) - documented.lineno + 1 if documented else 0
        length = (function.end_lineno or 0) - function.lineno + 1 - told
        if length > MOST_LINES_OF_A_FUNCTION:
            yield function.lineno, f"{function.name} has {length} lines, at most {MOST_LINES_OF_A_FUNCTION}: split it"


def names_are_imported_one_by_one(path: str, tree: ast.Module) -> Found:
    for line, name in imported(path, tree):
        if name.endswith(".*"):
            yield line, f"import * hides what {name[:-2]} gives: import names"


def errors_are_caught_by_name(path: str, tree: ast.Module) -> Found:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "a bare except swallows Ctrl-C: name the errors that are expected"


def no_file_can_run_code(path: str, tree: ast.Module) -> Found:
    for call, name in called(tree):
        if name in ("eval", "exec", "pickle.load", "pickle.loads", "yaml.unsafe_load"):
            yield call.lineno, f"{name} runs what a file says: read plain data (json, safe YAML, weights_only) instead"
        safe = [ast.unparse(word.value) for word in call.keywords if word.arg == "weights_only"]
        if name == "torch.load" and safe != ["True"]:
            yield call.lineno, "torch.load without weights_only=True runs what the file says: add it"


def for_types(node: ast.AST) -> bool:
    """True for ``if TYPE_CHECKING:``, whose body never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


INSIDE: list[Rule] = [
    imports_point_down,
    processes_speak_in_comm_only,
    devices_are_named_in_runtime_only,
    config_stops_at_the_door,
    starting_is_quick,
]
EVERYWHERE: list[Rule] = [
    files_and_functions_are_short,
    names_are_imported_one_by_one,
    errors_are_caught_by_name,
    no_file_can_run_code,
]


def sources(rule: Rule) -> list[Path]:
    folders = (PACKAGE,) if rule in INSIDE else (PACKAGE, *OUTSIDE[:-1])
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("rule", [*INSIDE, *EVERYWHERE], ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    found = []
    for path in sources(rule):
        name = path.relative_to(ROOT).as_posix()
        found += [f"{name}:{line}: {what}" for line, what in rule(name, ast.parse(path.read_text("utf-8")))]
    assert not found, "\n" + "\n".join(found)


LONG = "\n" * 61
BROKEN = [
    (imports_point_down, "utils/a.py", "from fastreid_lite.storage import x"),
    (imports_point_down, "storage/a.py", "import fastreid_lite.runtime.base"),
    (imports_point_down, "data/a.py", "from fastreid_lite import modeling"),
    (imports_point_down, "data/a.py", "from ..solver import x"),
    (imports_point_down, "data/samplers/a.py", "from ...solver.build import x"),
    (imports_point_down, "engine/a.py", "from fastreid_lite.engine import defaults"),
    (imports_point_down, "engine/a.py", "def f():\n    from fastreid_lite.evaluation import x"),
    (imports_point_down, "engine/__init__.py", "import_module('x')\nimportlib.import_module('fastreid_lite.data')"),
    (imports_point_down, "engine/defaults.py", "from fastreid_lite.compat import ignite"),
    (imports_point_down, "engine/defaults.py", "import tools.train_net"),
    (imports_point_down, "__init__.py", "from fastreid_lite.utils import comm"),
    (processes_speak_in_comm_only, "data/a.py", "import torch.distributed as dist"),
    (processes_speak_in_comm_only, "data/a.py", "from torch import distributed"),
    (processes_speak_in_comm_only, "data/a.py", "import torch\ntorch.distributed.barrier()"),
    (devices_are_named_in_runtime_only, "engine/a.py", "x = tensor.to('cuda:0')"),
    (devices_are_named_in_runtime_only, "engine/a.py", "torch.cuda.synchronize()"),
    (devices_are_named_in_runtime_only, "engine/a.py", "tensor.cuda()"),
    (config_stops_at_the_door, "data/a.py", "def f(cfg): ..."),
    (config_stops_at_the_door, "data/a.py", "def build_x(cfg):\n    self.cfg = cfg"),
    (config_stops_at_the_door, "data/a.py", "x = cfg.SOLVER"),
    (starting_is_quick, "__init__.py", "import torch"),
    (starting_is_quick, "data/__init__.py", "from torchvision import transforms"),
    (starting_is_quick, "config/a.py", "class A:\n    import timm"),
    (files_and_functions_are_short, "data/a.py", "\n" * 300 + "x = 1"),
    (files_and_functions_are_short, "data/a.py", f"def f():{LONG}    return 1"),
    (names_are_imported_one_by_one, "data/a.py", "from torch import *"),
    (errors_are_caught_by_name, "data/a.py", "try:\n    f()\nexcept:\n    g()"),
    (no_file_can_run_code, "data/a.py", "eval('1')"),
    (no_file_can_run_code, "data/a.py", "exec('1')"),
    (no_file_can_run_code, "data/a.py", "pickle.load(file)"),
    (no_file_can_run_code, "data/a.py", "torch.load(path)"),
    (no_file_can_run_code, "data/a.py", "torch.load(path, weights_only=False)"),
    (no_file_can_run_code, "data/a.py", "torch.load(path, weights_only=safe)"),
]
SOUND = [
    (imports_point_down, "data/samplers/a.py", "from ..samples import x\nfrom fastreid_lite.utils import comm"),
    (imports_point_down, "engine/defaults.py", "from fastreid_lite.data import x\nfrom fastreid_lite.engine import y"),
    (imports_point_down, "compat/ignite.py", "from fastreid_lite.engine.train_loop import x"),
    (imports_point_down, "cli.py", "from fastreid_lite.engine.defaults import x"),
    (processes_speak_in_comm_only, "utils/comm.py", "import torch.distributed as dist"),
    (devices_are_named_in_runtime_only, "runtime/a.py", "torch.cuda.synchronize()"),
    (devices_are_named_in_runtime_only, "engine/a.py", "'''cuda is a word here'''\nruntime.synchronize()"),
    (config_stops_at_the_door, "data/a.py", "def build_x(cfg):\n    def inner(): return cfg.A\n    return inner()"),
    (config_stops_at_the_door, "data/build.py", "def open_it(cfg): return cfg.A"),
    (config_stops_at_the_door, "engine/defaults.py", "self.cfg = cfg"),
    (starting_is_quick, "data/__init__.py", "def __getattr__(name):\n    import torch"),
    (starting_is_quick, "data/__init__.py", "if TYPE_CHECKING:\n    import torch"),
    (files_and_functions_are_short, "data/a.py", "def f():" + "\n" * 59 + "    return 1"),
    (errors_are_caught_by_name, "data/a.py", "try:\n    f()\nexcept OSError:\n    g()"),
    (no_file_can_run_code, "data/a.py", "model.eval()\ntorch.load(path, weights_only=True)"),
]


@pytest.mark.parametrize(("rule", "path", "source"), BROKEN)
def test_a_rule_sees_where_it_is_broken(rule: Rule, path: str, source: str) -> None:
    assert [message for _, message in rule(f"{PACKAGE}/{path}", ast.parse(source))]


@pytest.mark.parametrize(("rule", "path", "source"), SOUND)
def test_a_rule_lets_sound_source_pass(rule: Rule, path: str, source: str) -> None:
    assert not list(rule(f"{PACKAGE}/{path}", ast.parse(source)))


def test_packages_and_the_config_bring_nothing_heavy_with_them() -> None:
    packages = [path.parent for path in (ROOT / PACKAGE).rglob("__init__.py")]
    names = sorted(package.relative_to(ROOT).as_posix().replace("/", ".") for package in packages)
    code = f"import sys, {', '.join(names)}; print(sorted(set({sorted(HEAVY)}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", f"imported with the packages: {done.stdout}{done.stderr}"
