"""One all-reduce for all numbers of a period, whatever keys each process has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from fastreid_lite.utils import comm

#: how the values of one name are joined over time and over processes
MEAN, MAX, LAST = "mean", "max", "last"


@dataclass
class Partial:
    """What one process knows of one name in the period.

    Args:
        kind: MEAN joins by sum and count, MAX by the largest, LAST by the newest value of the lowest rank that has one.
        total: the sum, the largest or the newest value.
        count: how many values stand behind it.
        iteration: the step of the newest one.
    """

    kind: str
    total: float
    count: int
    iteration: int


class PackedReduction:
    """Joins numbers over the processes with one collective a call once all know which names there are.

    The layout of the packed vector is agreed: a sorted list of names, the same on every process. A process that has a
    new name says so in the fixed head of the vector, and then all exchange what the vector had no place for. So keys
    may differ between processes, in order too, without a hang and without being mixed up.
    """

    def __init__(self) -> None:
        self.layout: list[tuple[str, str]] = []

    def __call__(self, head: list[float], partials: Mapping[str, Partial]) -> tuple[list[float], dict[str, Partial]]:
        """Sum ``head`` over the processes and join ``partials``; both come back the same on every process.

        Args:
            head: the same number of floats on every process.
            partials: what this process has, by name.
        """
        if not comm.is_distributed():
            return head, dict(partials)
        width, rank = comm.get_world_size(), comm.get_rank()
        known = set(self.layout)
        fresh = {name: partial for name, partial in partials.items() if (name, partial.kind) not in known}
        vector = [*head, float(bool(fresh))]
        for name, kind in self.layout:
            vector += self._slots(kind, None if name in fresh else partials.get(name), rank, width)
        summed = comm.all_reduce_sum(torch.tensor(vector, dtype=torch.float64)).tolist()
        joined: dict[str, Partial] = {}
        place = len(head) + 1
        for name, kind in self.layout:
            size = len(self._slots(kind, None, rank, width))
            partial = self._read(kind, summed[place : place + size], width)
            place += size
            if partial is not None:
                joined[name] = partial
        if summed[len(head)] > 0:
            joined.update(self._exchange(fresh, joined))
        return summed[: len(head)], joined

    @staticmethod
    def _slots(kind: str, partial: Partial | None, rank: int, width: int) -> list[float]:
        """The part of the vector that one name takes. Only sums travel, so what is not summed has a slot a rank."""
        if kind == MEAN:
            slots = [0.0] * (2 + width)
            if partial is not None:
                # One more, so that a rank without the name, whose slot stays 0, is told from one at step 0.
                slots[0], slots[1], slots[2 + rank] = partial.total, partial.count, partial.iteration + 1
            return slots
        slots = [0.0] * (3 * width)
        if partial is not None:
            slots[3 * rank : 3 * rank + 3] = [partial.total, partial.count, float(partial.iteration)]
        return slots

    @staticmethod
    def _read(kind: str, slots: list[float], width: int) -> Partial | None:
        if kind == MEAN:
            total, count, *steps = slots
            return Partial(kind, total, int(count), int(max(steps)) - 1) if count else None
        ranks = [Partial(kind, *_typed(slots[3 * r : 3 * r + 3])) for r in range(width) if slots[3 * r + 1]]
        return _join(ranks) if ranks else None

    def _exchange(self, fresh: dict[str, Partial], placed: Mapping[str, Partial]) -> dict[str, Partial]:
        """The second collective: names that the layout has no place for, joined; the layout has them from now on.

        Raises:
            ValueError: processes disagree on the kind of a name (it is ``placed`` with another one, or was sent with
                two); on every process.
        """
        gathered = comm.all_gather_object({name: vars(partial) for name, partial in fresh.items()})
        names = sorted({name for part in gathered for name in part})
        joined = {}
        for name in names:
            found = [Partial(**part[name]) for part in gathered if name in part]
            kinds = sorted({partial.kind for partial in [*found, *([placed[name]] if name in placed else [])]})
            if len(kinds) > 1:
                raise ValueError(
                    f"{name!r} is put as {' by one process and as '.join(kinds)} by another: give it the same "
                    "smoothing_hint (or set_kind) on every process"
                )
            joined[name] = _join(found)
            self.layout = [(known, kind) for known, kind in self.layout if known != name] + [(name, kinds[0])]
        self.layout.sort()
        return joined


def _typed(slots: list[float]) -> tuple[float, int, int]:
    return slots[0], int(slots[1]), int(slots[2])


def _join(partials: list[Partial]) -> Partial:
    """The partials of several processes, at least one, in order of rank, as one."""
    first = partials[0]
    iteration = max(partial.iteration for partial in partials)
    count = sum(partial.count for partial in partials)
    if first.kind == MEAN:
        return Partial(MEAN, sum(partial.total for partial in partials), count, iteration)
    if first.kind == MAX:
        return Partial(MAX, max(partial.total for partial in partials), count, iteration)
    return Partial(LAST, first.total, first.count, iteration)
