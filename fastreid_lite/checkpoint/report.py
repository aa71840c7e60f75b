"""What loading weights did, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A tensor whose shapes differ: (name, shape in the file, shape in the model)."""

    name: str
    in_file: tuple[int, ...]
    in_model: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {list(self.in_file)} in the file, {list(self.in_model)} in the model"


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Which tensors of a checkpoint went where.

    Attributes:
        source: the checkpoint, for messages.
        loaded: names copied into the model.
        missing: names of the model that the file lacks; these tensors keep the values that they had.
        unexpected: names of the file that the model lacks.
        mismatched: in both, of different shapes, and not of the classifier; they keep their values too.
        classifier: skipped because they belong to a classifier of another number of classes, or missing ones of it.
    """

    source: str
    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: tuple[Mismatch, ...] = field(default=())
    classifier: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every tensor of the model but those of the classifier came from the file."""
        return not self.missing and not self.mismatched

    def problems(self) -> str:
        """Missing, mismatched and unexpected names, a short group each; "" where there are none."""
        groups = []
        if self.missing:
            groups.append(f"missing in the file: {shorten(self.missing)}")
        if self.mismatched:
            groups.append(f"of another shape: {shorten([str(mismatch) for mismatch in self.mismatched])}")
        if self.unexpected:
            groups.append(f"unexpected in the file: {shorten(self.unexpected)}")
        return "; ".join(groups)


def shorten(names: Sequence[str]) -> str:
    """The first few of ``names`` and how many more there are.

    >>> shorten(["a", "b"])
    'a, b'
    >>> shorten([str(i) for i in range(10)])
    '0, 1, 2, 3, 4, 5, 6, 7 and 2 more'
    """
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
