"""The pages of the documentation, and what they hold."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if path.exists()]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which the text begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of ``page``, in order."""
    text = page.read_text("utf-8")
    return [Block(match[1], match[2], text[: match.start(2)].count("\n")) for match in _FENCE.finditer(text)]


def prose(page: Path) -> str:
    """``page`` without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def code_words(page: Path) -> list[str]:
    """What stands in single backticks in the prose of ``page``."""
    return [" ".join(word.split()) for word in re.findall(r"`([^`]+)`", prose(page))]


def commands(page: Path) -> list[list[str]]:
    """Command lines in shell blocks and in backticks, each as words, backslashes at line ends joined."""
    shell = [block.text.replace("\\\n", " ") for block in blocks(page) if block.language in ("bash", "sh")]
    lines = [line for text in shell for line in text.splitlines()]
    lines += [word for word in code_words(page) if re.match(r"(python|make|torchrun) \S", word)]
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words]
