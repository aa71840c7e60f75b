"""Logging: a coloured line on rank 0's terminal, everything in ``log.txt``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from termcolor import colored

ROOT_NAME = "fastreid_lite"
_COLOURS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


class _ColourFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        colour = _COLOURS.get(record.levelname)
        return colored(line, colour) if colour else line


def setup_logger(output_dir: str | os.PathLike[str] | None = None, *, rank: int = 0) -> logging.Logger:
    """Set the package's logger up, once or again: what an earlier call added is closed and replaced.

    Args:
        output_dir: where ``log.txt`` is appended to (``log.txt.rank1`` and so on from the other processes);
            None for no file. The folder must exist.
        rank: this process's number. Only rank 0 speaks on the terminal, on standard output.
    """
    logger = logging.getLogger(ROOT_NAME)
    close_logger()
    logger.setLevel(logging.INFO)
    logger.propagate = False
    plain = "[%(asctime)s] %(levelname)s %(name)s: %(message)s"
    if rank == 0:
        console = logging.StreamHandler(sys.stdout)
        console.setFormatter(_ColourFormatter("[%(asctime)s] %(message)s", datefmt="%H:%M:%S"))
        logger.addHandler(console)
    else:
        # Without any handler Python would print warnings to the terminal.
        logger.addHandler(logging.NullHandler())
    if output_dir is not None:
        name = "log.txt" if rank == 0 else f"log.txt.rank{rank}"
        file = logging.FileHandler(Path(output_dir) / name, mode="a", encoding="utf-8")
        file.setFormatter(logging.Formatter(plain, datefmt="%m/%d %H:%M:%S"))
        logger.addHandler(file)
    return logger


def close_logger() -> None:
    """Close and remove the handlers that :func:`setup_logger` added, and hand records to the root logger again."""
    logger = logging.getLogger(ROOT_NAME)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = not logger.handlers
    logger.setLevel(logging.NOTSET)
