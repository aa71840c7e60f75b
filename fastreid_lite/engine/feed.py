"""Batches for the loop: from a loader of ours, which knows its position, or from any iterable."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from typing import Any

logger = logging.getLogger(__name__)


class Feed:
    """Fetches batches, starts a finite loader again, and knows how long an epoch is.

    A loader that has ``set_position(epoch, batch)`` is told where to go on; one that has ``state_dict`` and
    ``load_state_dict`` is saved and restored; any other goes on from its beginning after a resume, with a warning.

    Args:
        loader: an iterable of batches.
        accumulate_steps: batches to a step, >= 1.
        epoch_length: steps to an epoch; None for the batches of the loader / ``accumulate_steps``, rounded up, or,
            where the loader has no length, for what its first end shows.

    Raises:
        TypeError: ``loader`` is no iterable. ValueError: it is empty, or a number is out of range.
    """

    def __init__(self, loader: Iterable[Any], *, accumulate_steps: int = 1, epoch_length: int | None = None) -> None:
        if not hasattr(loader, "__iter__"):
            raise TypeError(f"the data loader is a {type(loader).__name__}, expected an iterable of batches")
        if accumulate_steps < 1:
            raise ValueError(f"accumulate_steps is {accumulate_steps!r}, expected a whole number >= 1")
        if epoch_length is not None and epoch_length < 1:
            raise ValueError(f"epoch_length is {epoch_length!r}, expected a whole number >= 1")
        self.loader: Any = loader
        self.accumulate_steps = accumulate_steps
        self.batches = _length(loader)
        if self.batches == 0:
            raise ValueError(f"the data loader ({type(loader).__name__}) is empty: it has no batch to train on")
        self._short_windows = epoch_length is None
        self.epoch_length = epoch_length
        if epoch_length is None and self.batches is not None:
            self.epoch_length = math.ceil(self.batches / accumulate_steps)
        self._iterator: Iterator[Any] | None = None
        self._served = 0
        # Rounds of the loader are its own count of epochs; the two differ where ``epoch_length`` was given.
        self._next_round = self._next_batch = 0
        self._opened: tuple[int, int, int] = (0, 0, 0)
        self._saved_position: tuple[int, int] | None = None
        self._ahead: list[Any] = []
        self._state_before_ahead: Any = None
        self._foreign_state: Any = None

    def go_to(self, epoch: int, step: int) -> None:
        """Make the next batch the first one of step ``step`` (from 0) of ``epoch`` (from 0)."""
        position, self._saved_position = self._saved_position, None
        round_, batch = (epoch, step * self.accumulate_steps) if position is None else position
        self._iterator, self._ahead = None, []
        self._next_round, self._next_batch = round_, batch
        if hasattr(self.loader, "set_position"):
            self.loader.set_position(round_, batch)
        elif self._foreign_state is not None:
            self.loader.load_state_dict(self._foreign_state)
            self._foreign_state = None
        elif batch:
            logger.warning(
                f"the data loader ({type(self.loader).__name__}) has neither set_position nor state_dict: "
                f"it starts from its beginning, so this run will not see the batches of the run that it resumes"
            )

    def fetch(self) -> Any:
        """The next batch; a finite loader is started again at its end.

        Raises:
            ValueError: the loader has no batch at all, or can be gone through only once and has run dry.
        """
        if self._ahead:
            self._served += 1
            return self._ahead.pop()
        if self._iterator is None:
            self._open()
        try:
            batch = next(self._iterator)  # type: ignore[arg-type]
        except StopIteration:
            batch = self._start_again()
        self._served += 1
        return batch

    def window(self, step: int) -> list[Any]:
        """The batches of step ``step`` (from 0, in its epoch): ``accumulate_steps``, fewer at the end of an epoch."""
        wanted = self.accumulate_steps
        if self.batches is not None and self._short_windows:
            wanted = min(wanted, self.batches - step * self.accumulate_steps)
        window = [self.fetch()]
        while len(window) < wanted and not (self.batches is None and self._short_windows and self._at_end()):
            window.append(self.fetch())
        return window

    def epoch_ends(self, steps: int) -> bool:
        """True where the epoch ends after ``steps`` steps of it. Learns the length from a loader that has none."""
        if self.epoch_length is not None:
            return steps >= self.epoch_length
        if self._at_end():
            self.epoch_length = steps
            return True
        return False

    def _open(self) -> None:
        set_epoch = getattr(getattr(self.loader, "sampler", None), "set_epoch", None)
        if set_epoch is not None:
            set_epoch(self._next_round)
        self._opened = (self._next_round, self._next_batch, self._served)
        self._next_round, self._next_batch = self._next_round + 1, 0
        self._iterator = iter(self.loader)

    def _start_again(self) -> Any:
        self._open()
        try:
            return next(self._iterator)  # type: ignore[arg-type]
        except StopIteration:
            pass
        kind = type(self.loader).__name__
        if self._served == 0:
            raise ValueError(f"the data loader ({kind}) is empty: it gave no batch")
        raise ValueError(
            f"the data loader ({kind}) ran dry after {self._served} batches and cannot be gone through again, but "
            f"steps are left: give a list, a DataLoader or an endless iterable, or a smaller max_iter"
        )

    def _at_end(self) -> bool:
        """True where the iterator has no further batch; one that it has is kept for the next fetch."""
        if self._ahead:
            return False
        if self._iterator is None:
            return self._served > 0
        if hasattr(self.loader, "state_dict"):
            self._state_before_ahead = self.loader.state_dict()
        try:
            self._ahead.append(next(self._iterator))
        except StopIteration:
            self._iterator = None
            return True
        return False

    def _position(self) -> tuple[int, int]:
        """Round and batch that the next fetch comes from."""
        if self._iterator is None:
            return self._next_round, self._next_batch
        round_, first, served = self._opened
        batch = first + self._served - served
        return (round_ + 1, 0) if batch == self.batches else (round_, batch)

    def state_dict(self, *, cut: bool = False) -> dict[str, Any]:
        """The length of an epoch, and the position of the loader, as it can be told it.

        Args:
            cut: the epoch was cut here, so a fresh iterator comes next and the position does not matter.
        """
        state: dict[str, Any] = {"epoch_length": self.epoch_length}
        if cut:
            return state
        if hasattr(self.loader, "set_position"):
            state["position"] = list(self._position())
        elif hasattr(self.loader, "state_dict"):
            state["loader"] = self._state_before_ahead if self._ahead else self.loader.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned; it takes effect at the next :meth:`go_to`."""
        if self.epoch_length is None:
            self.epoch_length = state.get("epoch_length")
        self._saved_position = tuple(state["position"]) if "position" in state else None
        if "loader" in state and hasattr(self.loader, "load_state_dict"):
            self._foreign_state = state["loader"]


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None
