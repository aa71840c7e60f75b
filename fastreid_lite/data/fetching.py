"""What the loaders share: torch's DataLoader set up so that it changes nothing, and the errors of its workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from fastreid_lite.data.images import ImageReadError
from fastreid_lite.data.reader import BatchReader, as_it_is, start_worker


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
    """``iter(loader)``, which starts the workers."""
    with _not_counting_cores():
        return iter(loader)


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


def check_share(rank: int, world_size: int, num_workers: int) -> None:
    """Refuse a rank outside of 0..world_size-1 and a negative number of workers."""
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank} of world_size {world_size}, expected 0 <= rank < world_size")
    if num_workers < 0:
        raise ValueError(f"num_workers is {num_workers} (DATALOADER.NUM_WORKERS), expected a number >= 0")
