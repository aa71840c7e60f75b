"""What the loaders share: torch's DataLoader set up so that it changes nothing, and the errors of its workers."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from fastreid_lite.data.images import ImageReadError
from fastreid_lite.data.reader import BatchReader, as_it_is, start_worker

# Iterators whose workers may live. A traceback can keep one alive to the end of the process.
_STARTED: weakref.WeakSet[Any] = weakref.WeakSet()


class WorkerDiedError(RuntimeError):
    """A loader worker ended without a word."""


def make_loader(reader: BatchReader, plan: Iterable[np.ndarray], **options: Any) -> DataLoader[Any]:
    """A torch DataLoader that fetches one batch for each array of triples in ``plan``; begin with :func:`start`."""
    with _not_counting_cores():
        return DataLoader(
            reader,
            batch_size=None,  # the reader makes the batches
            sampler=plan,
            collate_fn=as_it_is,
            worker_init_fn=start_worker,
            # Its own, or iter() would draw a number from torch's global state, and a resumed run would differ.
            generator=torch.Generator(),
            **options,
        )


def start(loader: DataLoader[Any]) -> Iterator[Any]:
    """``iter(loader)``, which starts the workers; they end with this process, however it ends."""
    if not _STARTED:
        # Before the standard library ends what is left of its children: it waits for a worker that is deaf to the one
        # SIGTERM that it sends (see start_worker).
        Finalize(None, _end_workers, exitpriority=100)  # and before it closes the queues that tell them
    with _not_counting_cores():
        fetched = iter(loader)
    _STARTED.add(fetched)
    return fetched


def _end_workers() -> None:
    for fetched in list(_STARTED):
        shut_down = getattr(fetched, "_shutdown_workers", None)
        if shut_down is not None:
            shut_down()


@contextmanager
def _not_counting_cores() -> Iterator[None]:
    """Without torch's warning about more workers than cores: how many are good also depends on the disks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


def fetch(fetched: Iterator[Any]) -> dict[str, Any] | ImageReadError | WorkerDiedError | None:
    """The next batch; None at the end.

    The two errors are returned for the caller to raise once it has let go of ``fetched``: an iterator that a traceback
    keeps alive ends its workers only when the garbage collector comes, and then waits five seconds for each.
    """
    try:
        batch: dict[str, Any] | ImageReadError | None = next(fetched, None)
    except RuntimeError as error:
        if "DataLoader worker" not in str(error) or "Caught" in str(error):
            raise
        return WorkerDiedError(
            f"a loader worker died ({error}); mostly because memory, or shared memory (/dev/shm), ran out: lower "
            f"DATALOADER.NUM_WORKERS (0 reads in the main process)"
        )
    return batch


def check_share(rank: int, world_size: int, num_workers: int, prefetch_factor: int) -> None:
    """Refuse a rank outside of 0..world_size-1, a negative number of workers, and workers with nothing to do ahead."""
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank} of world_size {world_size}, expected 0 <= rank < world_size")
    if num_workers < 0:
        raise ValueError(f"num_workers is {num_workers} (DATALOADER.NUM_WORKERS), expected a number >= 0")
    if prefetch_factor < 1:
        raise ValueError(f"prefetch_factor is {prefetch_factor} (DATALOADER.PREFETCH_FACTOR), expected a number >= 1")
