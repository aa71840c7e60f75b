"""How the tensors of foreign checkpoints are called here: tables, no code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KeyTable:
    """Names of one source of checkpoints.

    Args:
        source: whose checkpoints.
        renames: (regular expression for the whole name, replacement) pairs, the first that matches counts.
        ignored: regular expressions for whole names that a model here does not need.
    """

    source: str
    renames: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()

    def rename(self, names: Iterable[str], wanted: Iterable[str]) -> dict[str, str | None]:
        """Each of ``names`` and its name here, None for one that is not needed.

        A name is changed only if the model does not have it, and has the new one, and the file does not have that
        already: so a table never breaks a checkpoint that fits as it is.

        >>> FAST_REID.rename(["heads.classifier.weight", "pixel_mean"], ["heads.weight"])
        {'heads.classifier.weight': 'heads.weight', 'pixel_mean': None}

        Args:
            names: names in the file.
            wanted: names in the model.
        """
        present, known = list(names), set(wanted)
        taken = set(present)
        result: dict[str, str | None] = {}
        for name in present:
            result[name] = name
            if name in known:
                continue
            if any(re.fullmatch(pattern, name) for pattern in self.ignored):
                result[name] = None
                continue
            for pattern, replacement in self.renames:
                match = re.fullmatch(pattern, name)
                if match is None:
                    continue
                new = match.expand(replacement)
                if new in known and new not in taken:
                    result[name] = new
                    taken.add(new)
                break
        return result


# Since September 2020 fast-reid's names are ours. The files of its model zoo are older: the classifier was a layer of
# its own, the BNNeck had another name, and the normalisation of the pixels was saved.
FAST_REID = KeyTable(
    source="fast-reid",
    renames=(
        (r"heads\.classifier\.weight", r"heads.weight"),
        (
            r"heads\.bnneck\.(?:0\.)?(weight|bias|running_mean|running_var|num_batches_tracked)",
            r"heads.bottleneck.0.\1",
        ),
    ),
    ignored=(r"pixel_mean", r"pixel_std"),
)

KEY_TABLES: tuple[KeyTable, ...] = (FAST_REID,)
"""The tables that :func:`~fastreid_lite.checkpoint.weights.load_weights` tries, in this order."""
