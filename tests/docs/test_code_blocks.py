"""What the pages show runs, and what they name is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastreid_lite.config import get_cfg, load_config, parse_args
from fastreid_lite.data.datasets import DATASET_REGISTRY
from fastreid_lite.modeling import LOSS_REGISTRY
from fastreid_lite.utils.logger import close_logger
from tests.docs.pages import PAGES, ROOT, blocks, code_words, commands, prose

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
FOLDERS = ("benchmarks", "configs", "datasets", "docs", "examples", "fastreid_lite", "tests", "tools")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.fixture(autouse=True)
def _leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    registries = (LOSS_REGISTRY, DATASET_REGISTRY)
    before = [dict(registry._entries) for registry in registries]
    path, modules = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FASTREID_LITE_DATASETS", raising=False)
    yield
    close_logger()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("my_p"):  # what a page imports has to register again on the next one
            del sys.modules[name]
    for registry, entries in zip(registries, before):
        registry._entries = entries


@every_page
def test_the_python_blocks_of_a_page_run_one_after_the_other(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)


@every_page
def test_the_yaml_blocks_of_a_page_hold_known_keys(page: Path) -> None:
    for number, block in enumerate(blocks(page)):
        if block.language == "yaml":
            file = Path(f"{number}.yml")
            # A block that builds on another file says only what its own keys are.
            file.write_text(re.sub(r"^_BASE_:.*\n", "", block.text, flags=re.MULTILINE), "utf-8")
            load_config(file, search_path=[ROOT / "examples"])


@every_page
def test_the_commands_of_a_page_have_known_flags_and_keys(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for words in commands(page):
        _check_command([word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word) or words[0] == "make"])


def _check_command(words: list[str]) -> None:
    program, *rest = words
    if program == "make":
        _check_make(rest)
    elif program in ("python", "torchrun"):
        position = next(number for number, word in enumerate(rest) if word.endswith(".py"))
        script, arguments = rest[position], rest[position + 1 :]
        assert (ROOT / script).is_file(), script
        if script in ("tools/train_net.py", "examples/my_paper/train.py"):
            args = parse_args(arguments)
            # What a run has written is not there; everything else has to be.
            written = args.config_file is not None and args.config_file.startswith("output/")
            load_config(None if written else args.config_file, args.opts)
        elif arguments:
            done = subprocess.run([sys.executable, script, *arguments], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    else:
        assert program in ("cd", "git", "export", "ls", "cat"), words


def _check_make(words: list[str]) -> None:
    config = None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            assert name in TARGETS, f"make {name}"
        elif name == "CONFIG":
            config = value
        elif name == "OPTS":
            load_config(config, parse_args(value.split()).opts)


@every_page
def test_the_keys_flags_and_files_that_a_page_names_are_there(page: Path) -> None:
    keys = {*get_cfg().key_names(), *get_cfg().section_names()}
    flags = set(re.findall(r"--[a-z-]+", _help()))
    for word in code_words(page):
        key = re.fullmatch(r"([A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)+)( .*|=.*)?", word)
        if key and not key[1].startswith("PAPER"):
            assert key[1] in keys, word
        if key and key[3] and key[1] in get_cfg().key_names():
            load_config(None, parse_args(shlex.split(word)).opts)
        flag = re.fullmatch(r"(--[a-z-]+)([ =].*)?", word)
        assert flag is None or flag[1] in flags, word
        if re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./-]*", word):
            assert (ROOT / word).exists() or word.startswith("datasets/"), word


def _help() -> str:
    from fastreid_lite.config import build_parser

    return build_parser().format_help()


@every_page
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        where = (page.parent / file).resolve() if file else page
        assert where.exists(), target
        headings = re.findall(r"^#+ (.+)$", where.read_text("utf-8"), re.MULTILINE) if heading else []
        assert not heading or heading in [_anchor(text) for text in headings], target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_map_names_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
