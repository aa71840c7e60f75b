"""A validation part by identity, cut from the training images (DATASETS.VAL_FRACTION)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastreid_lite.data.datasets.identities import draw_identities
from fastreid_lite.data.samples import ReIDData, Samples


def split_validation(
    samples: Samples, fraction: float, seed: int, *, exclude_same: Sequence[str] = ("camid",)
) -> tuple[Samples, ReIDData]:
    """Take some identities out of ``samples`` for choosing the best model without a look at the test set.

    Split before the pids are relabelled (:func:`~fastreid_lite.data.datasets.combine.combine_train`), so that the
    classes left are 0..C-1. Only identities that can be found again are drawn: those with an image that the evaluation
    does not take out for another one.

    Args:
        samples: the training images of one dataset.
        fraction: part of all its identities, between 0 and 1.
        seed: of the draw.
        exclude_same: columns that, agreeing together with the pid, take an image out for a query (TEST.EXCLUDE_SAME);
            empty, or where ``samples`` lack one of them: only the query's own image is taken out.

    Returns:
        What is left to train on, and the validation data, named "validation": each image a query against the others
        (query and gallery are the same images, the evaluation takes a query's own file out), train empty.

    Raises:
        ValueError: ``fraction`` is not between 0 and 1, or no identity can be drawn, or none would be left.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(
            f"fraction (DATASETS.VAL_FRACTION) is {fraction}, expected a part of the training identities between 0 and "
            "1, both excluded"
        )
    pids = np.unique(samples.pids)
    eligible = _findable(samples, exclude_same)
    count = min(max(1, round(fraction * len(pids))), len(eligible), len(pids) - 1)
    if count < 1:
        raise ValueError(
            f"no validation part (DATASETS.VAL_FRACTION {fraction}) can be cut from {len(pids)} training identities, "
            f"{len(eligible)} of them with images to be found again; expected at least 2 and 1"
        )
    drawn = np.isin(samples.pids, draw_identities(eligible.tolist(), count, seed))
    held_out = samples.select(drawn)
    empty = Samples.empty(tuple(samples.columns))
    return samples.select(~drawn), ReIDData("validation", "", empty, held_out, held_out)


def _findable(samples: Samples, exclude_same: Sequence[str]) -> np.ndarray:
    """(M,) pids with two images that differ in one of the columns, or any two where these take nothing out."""
    differing = [samples.columns[name] for name in exclude_same if name in samples.columns]
    if not differing or len(differing) < len(exclude_same):
        differing = [np.arange(len(samples))]
    seen = np.unique(np.stack([samples.pids, *differing]), axis=1)
    pids, views = np.unique(seen[0], return_counts=True)
    return pids[views > 1]
