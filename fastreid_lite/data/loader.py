"""The two loaders: training batches from a position on, and evaluation batches with fixed boundaries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from torch.utils.data import DataLoader

from fastreid_lite.data.fetching import check_share, fetch, make_loader, start
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.reader import SKIPPED, BatchReader
from fastreid_lite.data.samples import Samples

_logger = logging.getLogger(__name__)


class OrdersEpochs(Protocol):
    """What the loader needs of a sampler; :class:`~fastreid_lite.data.samplers.EpochSampler` has it."""

    batch_size: int

    @property
    def batches_per_epoch(self) -> int: ...

    def epoch_indices(self, epoch: int) -> np.ndarray: ...


class EpochPlan:
    """A position in the epochs of a sampler, and what torch's DataLoader takes for a sampler: at each ``iter()``, this
    process's share of the rest of the epoch.

    The loader holds it and not the reverse: in a circle, workers would end only when the garbage collector comes.

    Args:
        sampler: gives the order.
        rank, world_size: whose share.
    """

    def __init__(self, sampler: OrdersEpochs, rank: int, world_size: int) -> None:
        self.sampler = sampler
        self.rank, self.world_size = rank, world_size
        self.epoch, self.batch = 0, 0

    def go_to(self, epoch: int, batch: int) -> None:
        """Move to ``batch`` of ``epoch``; behind the last one is the start of the next epoch."""
        batches = self.sampler.batches_per_epoch
        if epoch < 0 or not 0 <= batch <= batches:
            raise ValueError(f"position ({epoch}, {batch}) does not exist: epochs from 0, batches 0 to {batches}")
        self.epoch, self.batch = (epoch + 1, 0) if batch == batches else (epoch, batch)

    def __iter__(self) -> Iterator[np.ndarray]:
        """(B/W, 3) int64 for each batch: epoch, position in it over all processes, index of the sample."""
        epoch, first, batches = self.epoch, self.batch, self.sampler.batches_per_epoch
        indices = self.sampler.epoch_indices(epoch)
        expected = batches * self.sampler.batch_size
        if indices.shape != (expected,):
            raise ValueError(
                f"{type(self.sampler).__name__}.epoch_indices gave shape {indices.shape}, expected ({expected},)"
            )
        share = self.sampler.batch_size // self.world_size
        for number in range(first, batches):
            start = number * self.sampler.batch_size + self.rank * share
            positions = np.arange(start, start + share)
            yield np.stack([np.full(share, epoch), positions, indices[start : start + share]], axis=1)


class TrainLoader:
    """Batches whose order and augmentation are functions of (seed, epoch, position).

    Neither the number of workers nor prefetching nor where an iterator starts changes a byte; no global random state is
    touched. Each ``iter()`` yields the batches from :attr:`position` to the end of that epoch. :attr:`position` moves
    on with every batch handed out, and from the last one to the start of the next epoch, so an iterator that was
    dropped half-way is carried on by the next. A new iterator ends the one before, as :meth:`set_position` does.

    Process r of W gets the r-th of W equal, contiguous shares of each batch: the order over all does not depend on W.

    Args:
        samples: pids 0..C-1.
        sampler: gives the order of each epoch.
        preprocessor: its ``train`` is used.
        batch_size: images in a batch over all processes, a multiple of ``world_size``.
        seed: of the augmentation.
        num_workers: processes that read; 0 reads here. They live on between epochs.
        rank, world_size: this process, and how many there are.
        on_broken_image: "error", or "skip": another image takes the place, and :attr:`skipped` counts.
        pin_memory: put batches into page-locked memory, for copies to a CUDA device that do not wait.
        prefetch_factor: batches that each worker has ready.
        persistent_workers: False: workers end with their epoch and new ones start.

    Raises:
        ValueError: numbers that do not go together; while iterating, :class:`ImageReadError` for a broken image.
    """

    def __init__(
        self,
        samples: Samples,
        sampler: OrdersEpochs,
        preprocessor: Preprocessor,
        *,
        batch_size: int,
        seed: int,
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
        on_broken_image: str = "error",
        pin_memory: bool = False,
        prefetch_factor: int = 2,
        persistent_workers: bool = True,
    ) -> None:
        check_share(rank, world_size, num_workers, prefetch_factor)
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size} (SOLVER.IMS_PER_BATCH), expected a number >= 1")
        if batch_size % world_size:
            raise ValueError(
                f"batch_size {batch_size} (SOLVER.IMS_PER_BATCH) is no multiple of the {world_size} processes"
            )
        if sampler.batch_size != batch_size:
            raise ValueError(f"the sampler makes batches of {sampler.batch_size}, the loader of {batch_size}")
        if on_broken_image not in ("error", "skip"):
            raise ValueError(f"on_broken_image is {on_broken_image!r}, expected 'error' or 'skip'")
        self.samples = samples
        self.sampler = sampler
        self.preprocessor = preprocessor
        self.batch_size = batch_size
        self.rank, self.world_size = rank, world_size
        self.skipped = 0
        """Broken images that were replaced, in batches handed out by this object."""
        self.skipped_paths: dict[str, str] = {}
        """Path of each broken image met so far, with the reason."""
        self.num_classes = int(samples.pids.max()) + 1 if len(samples) else 0
        self.labels: tuple[Any, ...] = ()
        """Whom each class stands for, where known."""
        self.notes: tuple[str, ...] = ()
        """Lines about the images, for the log."""
        self._plan = EpochPlan(sampler, rank, world_size)
        self._turn = 0
        self._reader = BatchReader(samples, preprocessor, train=True, seed=seed, skip_broken=on_broken_image == "skip")
        self._options: dict[str, Any] = {
            "num_workers": num_workers,
            "pin_memory": pin_memory,
            "prefetch_factor": prefetch_factor if num_workers else None,
            "persistent_workers": persistent_workers and num_workers > 0,
        }
        self._loader: DataLoader[Any] | None = None

    def __len__(self) -> int:
        """Batches in an epoch, whatever the position."""
        return self.sampler.batches_per_epoch

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, batch), both from 0: where the next ``iter()`` starts."""
        return self._plan.epoch, self._plan.batch

    def set_position(self, epoch: int, batch: int = 0) -> None:
        """Let the next ``iter()`` start at ``batch`` of ``epoch``. No image is read to get there.

        Raises:
            ValueError: no such batch. The end of an epoch is the start of the next.
        """
        self._plan.go_to(epoch, batch)
        self._turn += 1

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._turn += 1
        if self._loader is None:
            self._loader = make_loader(self._reader, self._plan, **self._options)
        return self._hand_out(start(self._loader), self._turn)

    def _hand_out(self, fetched: Iterator[Any], turn: int) -> Iterator[dict[str, Any]]:
        while turn == self._turn:
            batch = fetch(fetched)
            if isinstance(batch, Exception):
                del fetched
                self.close()  # the next iter() starts new workers
                raise batch
            if batch is None:
                return
            self._plan.go_to(self._plan.epoch, self._plan.batch + 1)
            for path, reason in batch.pop(SKIPPED, ()):
                self._note_skipped(path, reason)
            yield batch
        raise RuntimeError(
            "this iterator of the training loader has ended: a newer one was made, the position set, or the "
            "loader closed; call iter(loader) again"
        )

    def _note_skipped(self, path: str, reason: str) -> None:
        self.skipped += 1
        if path not in self.skipped_paths:
            self.skipped_paths[path] = reason
            _logger.warning("skipped: %s", reason)

    def close(self) -> None:
        """End the workers. A later ``iter()`` starts new ones."""
        self._turn += 1
        self._loader = None


class TestLoader:
    """All images in order. Batch b is images b*B to (b+1)*B whatever the number of processes, so features do not move.

    Whole batches are dealt to the processes in contiguous runs; the last one may be short and is kept; a process may
    get none. Workers live for one ``iter()``.

    Args:
        samples: pids as in the files.
        preprocessor: its ``test`` is used.
        batch_size: images in a batch of one process (TEST.IMS_PER_BATCH).
        num_workers: processes that read; 0 reads here.
        rank, world_size: this process, and how many there are.
        pin_memory: put batches into page-locked memory.
        prefetch_factor: batches that each worker has ready.

    Raises:
        ValueError: numbers out of range; while iterating, ImageReadError for a broken image.
    """

    __test__ = False  # not for pytest, which collects classes by this beginning of their names

    def __init__(
        self,
        samples: Samples,
        preprocessor: Preprocessor,
        *,
        batch_size: int,
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
        pin_memory: bool = False,
        prefetch_factor: int = 2,
    ) -> None:
        check_share(rank, world_size, num_workers, prefetch_factor)
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size} (TEST.IMS_PER_BATCH), expected a number >= 1")
        self.samples = samples
        self.preprocessor = preprocessor
        self.batch_size = batch_size
        self.notes: tuple[str, ...] = ()
        """Lines about the images, for the log."""
        batches = -(-len(samples) // batch_size)
        self._batches = range(batches * rank // world_size, batches * (rank + 1) // world_size)
        self._reader = BatchReader(samples, preprocessor, train=False)
        self._options: dict[str, Any] = {
            "num_workers": num_workers,
            "pin_memory": pin_memory,
            "prefetch_factor": prefetch_factor if num_workers else None,
        }

    def __len__(self) -> int:
        """Batches of this process."""
        return len(self._batches)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self._batches:
            return
        fetched = start(make_loader(self._reader, [self._triples(batch) for batch in self._batches], **self._options))
        while (batch := fetch(fetched)) is not None:
            if isinstance(batch, Exception):
                del fetched
                raise batch
            yield batch

    def _triples(self, batch: int) -> np.ndarray:
        indices = np.arange(batch * self.batch_size, min((batch + 1) * self.batch_size, len(self.samples)))
        return np.stack([np.zeros_like(indices), indices, indices], axis=1)
