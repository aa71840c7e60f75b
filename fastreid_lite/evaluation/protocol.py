"""Which gallery images a query is ranked against: a protocol as data, and the pairs that it singles out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from typing import Protocol as Interface

import numpy as np

logger = logging.getLogger(__name__)


class LabelledImages(Interface):
    """N images as the evaluation needs them; :class:`fastreid_lite.data.Samples` is one."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Image files, N of them."""

    @property
    def columns(self) -> Mapping[str, np.ndarray]:
        """Name to (N,) int64; ``"pid"`` is always there."""

    @property
    def boxes(self) -> np.ndarray | None:
        """(N, 4), the part of the file that is the image; None where it is the whole file."""


@dataclass(frozen=True)
class Protocol:
    """How a query is ranked. The default is Market-1501's.

    A query's own image (same file, and same box where there are boxes) is always taken out of its gallery.

    Args:
        exclude_same: columns which, all agreeing together with the pid, take a gallery item out of a query's ranking
            (TEST.EXCLUDE_SAME). Empty, or where a set lacks one of them: only the query's own image is taken out.
        junk_pids: images of these identities are neither queries nor gallery.
        query_where: column to allowed values; other queries are not ranked. Empty: all are.
        gallery_where: the same of the gallery: other items are not ranked against.
        trials: 0 ranks against the whole gallery. Above 0 each trial draws one gallery item of each group, and metrics
            are means over the trials.
        draw_by: the columns that make a group, for trials: ``("pid",)``, or ``("pid", "camid")``.
        seed: of the draws; trial t is the same whatever the number of trials.

    Raises:
        TypeError: ``exclude_same`` or ``draw_by`` is not a tuple of column names.
        ValueError: ``trials`` is negative, or ``draw_by`` is empty.
    """

    exclude_same: tuple[str, ...] = ("camid",)
    junk_pids: tuple[int, ...] = (-1,)
    query_where: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    gallery_where: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    trials: int = 0
    draw_by: tuple[str, ...] = ("pid",)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("exclude_same", "draw_by"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(column, str) for column in value):
                key = " (TEST.EXCLUDE_SAME)" if name == "exclude_same" else ""
                raise TypeError(f'{name}{key} is {value!r}, expected a tuple of column names, such as ("camid",) or ()')
        if self.trials < 0:
            raise ValueError(f"trials is {self.trials}, expected 0 (the whole gallery) or the number of draws")
        if not self.draw_by:
            raise ValueError('draw_by is empty, expected the columns that make a group, such as ("pid",)')

    def query_mask(self, query: LabelledImages) -> np.ndarray:
        """(Q,) bool, the queries that are ranked."""
        return self._mask(query, self.query_where, "query")

    def gallery_mask(self, gallery: LabelledImages, trial: int | None = None) -> np.ndarray:
        """(G,) bool, the gallery items that are ranked against; in trial number ``trial``, None for the whole."""
        mask = self._mask(gallery, self.gallery_where, "gallery")
        if trial is None:
            return mask
        rows = np.flatnonzero(mask)
        groups = np.stack([_column(gallery, name, "gallery")[rows] for name in self.draw_by], axis=1)
        shuffled = np.random.default_rng([self.seed, trial]).permutation(len(rows))
        # The first of each group in shuffled order is a uniform draw from it.
        first = np.unique(groups[shuffled], axis=0, return_index=True)[1]
        drawn = np.zeros_like(mask)
        drawn[rows[shuffled[first]]] = True
        return drawn

    def _mask(self, images: LabelledImages, where: Mapping[str, tuple[int, ...]], part: str) -> np.ndarray:
        mask = ~np.isin(images.columns["pid"], np.asarray(self.junk_pids, dtype=np.int64))
        for name, allowed in where.items():
            mask &= np.isin(_column(images, name, part), np.asarray(allowed, dtype=np.int64))
        return mask


#: Market-1501's protocol, the default everywhere.
MARKET = Protocol()


class Pairs(NamedTuple):
    """Pairs of a query row and a gallery row, each pair once, in ascending order of query and then of gallery."""

    rows: np.ndarray
    columns: np.ndarray

    def select(self, mask: np.ndarray) -> Pairs:
        """The pairs where ``mask`` is true."""
        return Pairs(self.rows[mask], self.columns[mask])


def same_identity(query: LabelledImages, gallery: LabelledImages) -> Pairs:
    """All pairs of one identity."""
    query_pids, gallery_pids = query.columns["pid"], gallery.columns["pid"]
    order = np.argsort(gallery_pids, kind="stable")
    ordered = gallery_pids[order]
    begin = np.searchsorted(ordered, query_pids, side="left")
    counts = np.searchsorted(ordered, query_pids, side="right") - begin
    rows = np.repeat(np.arange(len(query_pids)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(rows, order[np.repeat(begin, counts) + within])


def own_images(query: LabelledImages, gallery: LabelledImages) -> Pairs:
    """The pairs that are one image: same path, and same box where there are boxes."""
    where: dict[tuple[object, ...], list[int]] = {}
    for column, key in enumerate(_image_keys(gallery)):
        where.setdefault(key, []).append(column)
    found = [(row, column) for row, key in enumerate(_image_keys(query)) for column in where.get(key, ())]
    table = np.asarray(found, dtype=np.int64).reshape(-1, 2)
    return Pairs(table[:, 0], table[:, 1])


def split_pairs(query: LabelledImages, gallery: LabelledImages, protocol: Protocol) -> tuple[Pairs, Pairs]:
    """The true matches that are ranked, and the pairs that ``protocol`` takes out. Masks are not applied."""
    same = same_identity(query, gallery)
    own = own_images(query, gallery)
    size = max(1, len(gallery.columns["pid"]))
    own_codes = own.rows * size + own.columns
    is_own = np.isin(same.rows * size + same.columns, own_codes)
    out = is_own | _agree(query, gallery, same, protocol.exclude_same)
    # An own image under another pid is a slip in the labels; it goes out all the same.
    codes = np.union1d((same.rows * size + same.columns)[out], own_codes).astype(np.int64)
    return same.select(~out), Pairs(codes // size, codes % size)


def _agree(query: LabelledImages, gallery: LabelledImages, pairs: Pairs, names: Sequence[str]) -> np.ndarray:
    missing = [name for name in names if name not in query.columns or name not in gallery.columns]
    if not names or missing:
        if missing:
            # Sets without cameras are common under the default; any other name is likely to be a slip.
            level = logging.INFO if missing == ["camid"] else logging.WARNING
            logger.log(
                level,
                "no column %s in query and gallery: only a query's own image is taken out of its gallery "
                "(TEST.EXCLUDE_SAME is %s; columns: %s)",
                ", ".join(map(repr, missing)),
                tuple(names),
                ", ".join(sorted(set(query.columns) & set(gallery.columns))),
            )
        return np.zeros(len(pairs.rows), dtype=bool)
    equal = [query.columns[name][pairs.rows] == gallery.columns[name][pairs.columns] for name in names]
    return np.asarray(np.logical_and.reduce(equal))


def _image_keys(images: LabelledImages) -> list[tuple[object, ...]]:
    if images.boxes is None:
        return [(path,) for path in images.paths]
    return [(path, *box) for path, box in zip(images.paths, images.boxes.tolist())]


def _column(images: LabelledImages, name: str, part: str) -> np.ndarray:
    if name not in images.columns:
        raise KeyError(f"the protocol reads column {name!r}, which the {part} lacks; it has {sorted(images.columns)}")
    return images.columns[name]
