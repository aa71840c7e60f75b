"""The command line of the tools. Imports nothing but the standard library, so ``--help`` is there at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from .errors import ConfigError, ConfigKeyError, ConfigValueError, nearest

_EXAMPLES = """\
options:
  KEY VALUE or KEY=VALUE, any number of them, in any order with the flags; they win over the config file. Values are
  written as in YAML: SOLVER.STEPS "[40, 90]", DATASETS.NAMES "[Market1501]", SOLVER.BASE_LR 1e-3. All keys, each with
  its meaning, stand in fastreid_lite/config/defaults/.

examples:
  python tools/train_net.py --config-file configs/Market1501/bagtricks_R50.yml OUTPUT_DIR output/bot
  python tools/train_net.py --config-file configs/Market1501/bagtricks_R50.yml --resume OUTPUT_DIR output/bot
  python tools/train_net.py --config-file output/bot/config.yaml --eval-only MODEL.WEIGHTS output/bot/model_best.pth
"""
# Flags that take the next word as their value; --resume takes one only after "=".
_WITH_VALUE = ("--config-file", "--num-processes", "--num-gpus", "--num-machines", "--machine-rank", "--dist-url")
_WITHOUT_VALUE = ("--eval-only", "--resume", "--help", "-h")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and exits with status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the flags. The options between them are taken out first, so use :func:`parse_args` to parse."""
    parser = _Parser(
        description="Train a model, or evaluate it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage="%(prog)s [--config-file FILE] [--eval-only] [--resume[=PATH]] [--num-processes N]\n"
        "       [KEY VALUE | KEY=VALUE ...]",
    )
    add = parser.add_argument
    add("--config-file", metavar="FILE", help="YAML file with the keys that differ from the defaults")
    add("--eval-only", action="store_true", help="evaluate MODEL.WEIGHTS, or with --resume the newest checkpoint")
    add(
        "--resume",
        nargs="?",
        const=True,
        default=False,
        metavar="=PATH",
        help="go on with the run in OUTPUT_DIR, from its newest good checkpoint; with =PATH from exactly that one",
    )
    add("--num-processes", type=int, metavar="N", help="processes on this machine, one per device (default: 1)")
    machines = parser.add_argument_group("several machines", "with fast-reid's meaning; torchrun needs none of them")
    add = machines.add_argument
    add("--num-gpus", type=int, metavar="N", help="the same as --num-processes; 0 counts as 1")
    add("--num-machines", type=int, default=1, metavar="N", help="machines in all (default: 1)")
    add("--machine-rank", type=int, default=0, metavar="R", help="number of this machine, from 0 (default: 0)")
    add("--dist-url", default="auto", metavar="URL", help="where the processes meet, tcp://HOST:PORT (default: auto)")
    return parser


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, checked; an error is one line on stderr and exit status 2.

    Args:
        argv: the words after the program's name; None takes those of this process.

    Returns:
        ``config_file`` (None where not given), ``eval_only``, ``resume`` (False, True or a path), ``num_processes``
        (>= 1, from --num-processes or --num-gpus), ``num_gpus`` (None where not given), ``num_machines``,
        ``machine_rank``, ``dist_url`` ("auto" or a URL), and ``opts``: the words of the options, as they were.
    """
    parser = build_parser()
    flags, opts = _separate(parser, list(sys.argv[1:] if argv is None else argv))
    args = parser.parse_args(flags)
    args.opts = opts
    _check_processes(parser, args)
    if args.resume == "":
        parser.error("--resume= has no path; --resume alone takes the newest checkpoint in OUTPUT_DIR")
    if opts:
        from .defaults import get_cfg
        from .options import split_options

        try:
            split_options(opts, known=get_cfg().key_names())
        except ConfigError as error:
            hint = "; a path for --resume is written --resume=PATH" if args.resume is True else ""
            parser.error(f"{error}{hint}")
    return args


def _separate(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """The flags with their values, and the other words. All words after ``--`` are other words."""
    flags: list[str] = []
    opts: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        name = word.partition("=")[0]
        if word == "--":
            return flags, opts + words[position + 1 :]
        if name in _WITH_VALUE and "=" not in word:
            if position + 1 == len(words) or words[position + 1].partition("=")[0] in _WITH_VALUE + _WITHOUT_VALUE:
                parser.error(f"{word} has no value")
            flags.append(f"{word}={words[position + 1]}")
            position += 1
        elif name in _WITH_VALUE + _WITHOUT_VALUE:
            flags.append(word)
        elif word.startswith("--"):
            near = nearest(name, _WITH_VALUE + _WITHOUT_VALUE)
            parser.error(f"unknown flag {name}" + (f"; did you mean {near}?" if near else ""))
        else:
            opts.append(word)
        position += 1
    return flags, opts


def _check_processes(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.num_gpus is not None and args.num_gpus < 0:
        parser.error(f"--num-gpus must not be negative, got {args.num_gpus}")
    if args.num_processes is not None and args.num_processes < 1:
        parser.error(f"--num-processes must be at least 1, got {args.num_processes}")
    from_gpus = None if args.num_gpus is None else max(args.num_gpus, 1)
    if from_gpus is not None and args.num_processes not in (None, from_gpus):
        parser.error(f"--num-processes {args.num_processes} and --num-gpus {args.num_gpus} differ: give one of them")
    args.num_processes = args.num_processes or from_gpus or 1
    if args.num_machines < 1:
        parser.error(f"--num-machines must be at least 1, got {args.num_machines}")
    if not 0 <= args.machine_rank < args.num_machines:
        parser.error(f"--machine-rank must be from 0 to {args.num_machines - 1}, got {args.machine_rank}")
    if args.num_machines > 1 and args.dist_url == "auto":
        parser.error("--num-machines needs --dist-url tcp://HOST:PORT, with the address of machine 0")


def check_weights(args: argparse.Namespace, cfg: Any) -> None:
    """Refuse to evaluate random weights, and weights that are not there.

    Raises:
        ConfigKeyError: --eval-only with neither MODEL.WEIGHTS nor --resume.
        ConfigValueError: MODEL.WEIGHTS, or the path of --resume, is no file.
    """
    if args.eval_only and not args.resume and not cfg.MODEL.WEIGHTS:
        raise ConfigKeyError(
            "--eval-only has nothing to evaluate: give MODEL.WEIGHTS FILE, or --resume for the newest checkpoint"
        )
    for name, path in (("--resume", args.resume), ("MODEL.WEIGHTS", "" if args.resume else cfg.MODEL.WEIGHTS)):
        if isinstance(path, str) and path and not Path(path).expanduser().is_file():
            raise ConfigValueError(f"{name} names a file that is not there: {path}")


@contextmanager
def config_error_exit(prog: str | None = None) -> Iterator[None]:
    """Turn a :class:`ConfigError` in the block into one line on stderr and exit status 2.

    Args:
        prog: the program's name; None takes that of this process.
    """
    try:
        yield
    except ConfigError as error:
        name = prog if prog is not None else Path(sys.argv[0]).name
        print(f"{name}: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
