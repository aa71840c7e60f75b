"""The storage that hooks, models and losses put numbers into, and that writers read."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

from fastreid_lite.storage.numbers import admit, read
from fastreid_lite.storage.packing import LAST, MAX, MEAN, PackedReduction, Partial

_STACK: list[EventStorage] = []
# A name whose values nobody publishes is folded into a sum this often, so that memory stays bounded.
_FOLD_EVERY = 512
# How many published values a name keeps for `history`.
_WINDOW = 20


def get_event_storage() -> EventStorage:
    """The storage of the trainer that is running in this process.

    Raises:
        RuntimeError: none is: the caller stands outside a training run.
    """
    if not _STACK:
        raise RuntimeError(
            "no EventStorage is active: numbers can be put from inside a trainer's run, or inside "
            "`with EventStorage(0):`; ask has_event_storage() first where a model also runs elsewhere"
        )
    return _STACK[-1]


def has_event_storage() -> bool:
    """True inside a training run (or a ``with`` block over a storage)."""
    return bool(_STACK)


class Value(NamedTuple):
    """A published number: the same on every process.

    Args:
        value: over the steps since the last time that this name was published: the mean, or what its kind says.
        iteration: the step of the newest value behind it.
        serial: grows with every publication, so a writer can tell what it has written.
    """

    value: float
    iteration: int
    serial: int


class EventStorage:
    """Numbers by name.

    What is put stays where it is, detached and unread: a tensor on a device costs no wait. ``publish`` reads
    everything with one copy and joins the processes with one collective; from then on ``published`` has it. Smoothing
    is the mean over the steps between two publications, so every step counts once in one log line; names put with
    ``smoothing_hint=False`` (a learning rate, a result of an evaluation) keep their newest value.

    Args:
        start_iter: the step in progress, as ``TrainerBase.iter`` counts it; the trainer keeps ``iter`` up to date.

    Attributes:
        iter: the step in progress.
        serial: how many values were published so far.
    """

    def __init__(self, start_iter: int = 0) -> None:
        self.iter = start_iter
        self._pending: dict[str, list[Any]] = {}
        self._partials: dict[str, Partial] = {}
        self._iterations: dict[str, int] = {}
        self._kinds: dict[str, str] = {}
        self._published: dict[str, Value] = {}
        self._histories: dict[str, deque[Value]] = {}
        self._newest: dict[str, float] = {}
        self.serial = 0
        self._prefix = ""
        self._providers: list[Callable[[], None]] = []
        self._reduction = PackedReduction()

    def put_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Add ``value`` (a number, or a tensor or array of one element) under ``name``.

        Raises:
            TypeError: it is no number. ValueError: it has more than one element.
        """
        if self._prefix:
            name = self._prefix + name
        if type(value) is not float:
            value = admit(name, value)
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = []
            self._kinds.setdefault(name, MEAN if smoothing_hint else LAST)
        pending.append(value)
        self._iterations[name] = self.iter
        if len(pending) >= _FOLD_EVERY:
            self._fold([name])

    def put_scalars(self, *, smoothing_hint: bool = True, **values: Any) -> None:
        """``put_scalar`` for each of ``values``."""
        for name, value in values.items():
            self.put_scalar(name, value, smoothing_hint)

    def put_results(self, results: dict[str, float]) -> None:
        """Publish numbers that are the same on every process already, such as those of an evaluation, at once."""
        for name, value in results.items():
            name = self._prefix + name
            self._kinds[name] = LAST
            self._publish_value(name, float(admit(name, value)), self.iter)

    def set_kind(self, name: str, kind: str) -> None:
        """How ``name`` is joined over steps and processes: "mean", "max" or "last".

        Raises:
            ValueError: another word.
        """
        if kind not in (MEAN, MAX, LAST):
            raise ValueError(f"kind of {name!r} is {kind!r}, expected one of {MEAN!r}, {MAX!r}, {LAST!r}")
        self._kinds[name] = kind

    def on_publish(self, provider: Callable[[], None]) -> None:
        """Call ``provider`` at the start of every publication: for numbers that are cheap to keep, dear to put."""
        self._providers.append(provider)

    def off_publish(self, provider: Callable[[], None]) -> None:
        """Take back :meth:`on_publish`; nothing happens where ``provider`` is not there."""
        self._providers = [other for other in self._providers if other != provider]

    @contextmanager
    def name_scope(self, name: str) -> Iterator[None]:
        """Put ``name/`` before every name put inside."""
        before, self._prefix = self._prefix, f"{self._prefix}{name.rstrip('/')}/"
        try:
            yield
        finally:
            self._prefix = before

    def publish(self, head: list[float] | None = None, *, joined: bool = True) -> list[float]:
        """Read what was put since the last call, join the processes, and make it readable.

        A collective where there are several processes: all call it at the same step.

        Args:
            head: numbers to sum over the processes in the same collective; the sums come back.
            joined: False reads this process's numbers alone, for a run that has failed, where the others may be gone.
        """
        for provider in self._providers:
            provider()
        self._fold(list(self._pending))
        head, partials = head or [], self._partials
        if joined:
            head, partials = self._reduction(head, partials)
        self._partials = {}
        for name in sorted(partials):
            partial = partials[name]
            value = partial.total / partial.count if partial.kind == MEAN else partial.total
            self._publish_value(name, value, partial.iteration)
        return head

    def published(self) -> dict[str, Value]:
        """The newest published value of each name, the same on every process."""
        return self._published

    def published_since(self, serial: int) -> list[tuple[str, Value]]:
        """What was published after ``serial``, as (name, value) in order of iteration; the last 20 of each name."""
        found = []
        for name, values in self._histories.items():
            for value in reversed(values):
                if value.serial <= serial:
                    break
                found.append((name, value))
        return sorted(found, key=lambda item: (item[1].iteration, item[1].serial))

    def is_smoothed(self, name: str) -> bool:
        """False where ``name`` keeps its newest value: put with ``smoothing_hint=False``, or a result."""
        return self._kinds.get(name, MEAN) != LAST

    def latest(self) -> dict[str, tuple[float, int]]:
        """The newest (value, iteration) of each name as this process knows it, published or not; reads the device."""
        found = {name: (value.value, value.iteration) for name, value in self._published.items()}
        for name, partial in self._partials.items():
            found[name] = (self._newest[name], partial.iteration)
        for name, pending in self._pending.items():
            if pending:
                found[name] = (float(pending[-1]), self._iterations[name])
        return found

    def history(self, name: str) -> list[tuple[float, int]]:
        """The last published (value, iteration) pairs of ``name``, at most 20, oldest first.

        Raises:
            KeyError: nothing was published under that name.
        """
        if name not in self._histories:
            raise KeyError(f"nothing was published under {name!r}; published: {', '.join(sorted(self._histories))}")
        return [(value.value, value.iteration) for value in self._histories[name]]

    def state_dict(self) -> dict[str, Any]:
        """What is shared by all processes. Its size depends on the number of names, not on the length of the run."""
        return {
            "histories": {name: [list(value) for value in values] for name, values in self._histories.items()},
            "kinds": dict(self._kinds),
            "serial": self.serial,
            "layout": [list(pair) for pair in self._reduction.layout],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self._histories = {
            name: deque((Value(*row) for row in rows), maxlen=_WINDOW) for name, rows in state["histories"].items()
        }
        self._published = {name: values[-1] for name, values in self._histories.items()}
        self._kinds.update(state["kinds"])
        self.serial = state["serial"]
        self._reduction.layout = [(name, kind) for name, kind in state["layout"]]

    def local_state_dict(self) -> dict[str, Any]:
        """What this process has put and nobody has published yet."""
        self._fold(list(self._pending))
        return {name: [p.kind, p.total, p.count, p.iteration, self._newest[name]] for name, p in self._partials.items()}

    def load_local_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`local_state_dict` returned; numbers put before are dropped."""
        self._pending = {}
        self._partials = {name: Partial(*row[:4]) for name, row in state.items()}
        self._newest = {name: row[4] for name, row in state.items()}

    def __enter__(self) -> EventStorage:
        _STACK.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _STACK.pop()

    def _publish_value(self, name: str, value: float, iteration: int) -> None:
        self.serial += 1
        self._published[name] = Value(value, iteration, self.serial)
        self._histories.setdefault(name, deque(maxlen=_WINDOW)).append(self._published[name])

    def _fold(self, names: list[str]) -> None:
        """Add pending values to the partial sums, one after the other, so it does not matter when this happens."""
        values = read({name: self._pending[name] for name in names})
        for name, numbers in values.items():
            partial = self._partials.get(name)
            if partial is None:
                kind = self._kinds[name]
                partial = self._partials[name] = Partial(kind, -math.inf if kind == MAX else 0.0, 0, 0)
            if partial.kind == MEAN:
                # One after the other; sum() would carry a correction, and then it would matter where a fold falls.
                partial.total = deque(accumulate(numbers, initial=partial.total), maxlen=1).pop()
            else:
                partial.total = max(partial.total, *numbers) if partial.kind == MAX else numbers[-1]
            partial.count += len(numbers)
            partial.iteration = self._iterations[name]
            self._newest[name] = numbers[-1]
            self._pending[name] = []
