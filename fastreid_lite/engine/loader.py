"""The loader of a trainer, and the time that it makes the trainer wait."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from fastreid_lite.engine.feed import Feed
from fastreid_lite.engine.points import PointsOfTheLoop


class FedFromALoader(PointsOfTheLoop):
    """Fetches batches.

    Attributes:
        epoch_step: steps done in the epoch.
        data_time: seconds spent waiting for the loader, in all; timers take differences.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch_step = 0
        self.data_time = 0.0
        self._feed: Feed | None = None

    @property
    def data_loader(self) -> Any:
        """Where batches come from; None where this trainer has no loader."""
        return None if self._feed is None else self._feed.loader

    def set_loader(self, loader: Iterable[Any], *, accumulate_steps: int = 1, epoch_length: int | None = None) -> None:
        """Fetch from ``loader`` from now on (see :class:`Feed` for arguments and errors)."""
        self._feed = Feed(loader, accumulate_steps=accumulate_steps, epoch_length=epoch_length)

    def next_batch(self) -> Any:
        """The next batch of the loader; the time that it took is added to ``data_time``.

        Raises:
            RuntimeError: there is no loader. ValueError: the loader is empty or has run dry.
        """
        start = time.perf_counter()
        batch = self._loaded_feed().fetch()
        self.data_time += time.perf_counter() - start
        return batch

    def next_window(self) -> list[Any]:
        """The batches of this step: as many as are accumulated to one step, fewer at the end of an epoch."""
        start = time.perf_counter()
        window = self._loaded_feed().window(self.epoch_step)
        self.data_time += time.perf_counter() - start
        return window

    def at_end_of_loader(self) -> bool:
        """Ask a loader without a length whether the epoch ends with this step; what it then fetches waits its turn."""
        start = time.perf_counter()
        ends = self._loaded_feed().epoch_ends(self.epoch_step)
        self.data_time += time.perf_counter() - start
        return ends

    def _loaded_feed(self) -> Feed:
        if self._feed is None:
            raise RuntimeError(f"{type(self).__name__} has no data loader: call set_loader(loader) first")
        return self._feed
