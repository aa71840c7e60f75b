"""Results as a table for a terminal or a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tabulate import tabulate


def results_table(results: Mapping[str, Mapping[str, float]], notes: Sequence[str] = ()) -> str:
    """One row for each dataset, one column for each metric, then the notes.

    Args:
        results: dataset to metric to value, percent. A metric that is NaN or absent is shown as "n/a".
        notes: sentences below the table, such as that the best model was chosen on the test set.

    >>> print(results_table({"Market1501": {"Rank-1": 94.2, "mAP": 85.25}}, ["Chosen on the test set."]))
    Dataset       Rank-1    mAP
    ----------  --------  -----
    Market1501     94.20  85.25
    Note: Chosen on the test set.
    """
    metrics = list(dict.fromkeys(name for values in results.values() for name in values))
    rows = [[dataset, *(_shown(values.get(name)) for name in metrics)] for dataset, values in results.items()]
    table = tabulate(
        rows,
        headers=["Dataset", *metrics],
        tablefmt="simple",
        colalign=("left", *("right" for _ in metrics)) if rows else None,
        disable_numparse=True,
    )
    return "\n".join([table, *(f"Note: {note}" for note in notes)])


def _shown(value: float | None) -> str:
    return "n/a" if value is None or math.isnan(value) else f"{value:.2f}"
