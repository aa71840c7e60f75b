"""What every training sampler is: a function from the number of an epoch to the order of its images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np


class EpochSampler:
    """Base of the training samplers. It draws from (seed, epoch) alone and keeps no position.

    Args:
        pids: (N,) integers, the identity of each image.
        camids: (N,) integers, the camera of each image; None where there are none.
        batch_size: images in a batch over all processes (SOLVER.IMS_PER_BATCH).
        seed: of the run, >= 0.
        num_instances: images of an identity in a batch (DATALOADER.NUM_INSTANCE), for the samplers that have such a
            thing.
        world_size: number of processes, which must share a batch evenly. It changes no order.

    Raises:
        TypeError: pids or camids that are not integers.
        ValueError: lengths that differ, fewer images than one batch, a batch that the processes cannot share.
    """

    def __init__(
        self,
        pids: Sequence[int] | np.ndarray,
        camids: Sequence[int] | np.ndarray | None = None,
        *,
        batch_size: int,
        seed: int,
        num_instances: int = 1,
        world_size: int = 1,
    ) -> None:
        self.pids = _integers(pids, "pids")
        self.camids = None if camids is None else _integers(camids, "camids")
        if self.camids is not None and len(self.camids) != len(self.pids):
            raise ValueError(f"{len(self.camids)} camids for {len(self.pids)} pids, expected one for each image")
        for name, number, least in (
            ("batch_size (SOLVER.IMS_PER_BATCH)", batch_size, 1),
            ("num_instances (DATALOADER.NUM_INSTANCE)", num_instances, 1),
            ("world_size", world_size, 1),
            ("seed (SEED)", seed, 0),
        ):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
                raise ValueError(f"{name} is {number!r}, expected an integer >= {least}")
        if batch_size % world_size:
            raise ValueError(
                f"a batch of {batch_size} images (SOLVER.IMS_PER_BATCH) cannot be shared evenly by {world_size} "
                f"processes; make it a multiple of {world_size}"
            )
        if len(self.pids) < batch_size:
            raise ValueError(
                f"{len(self.pids)} training images are fewer than one batch of {batch_size} (SOLVER.IMS_PER_BATCH); "
                f"lower it or add images"
            )
        self.batch_size = int(batch_size)
        self.num_instances = int(num_instances)
        self.world_size = int(world_size)
        self.seed = int(seed)

    @property
    def batches_per_epoch(self) -> int:
        """floor(N / batch_size), the same in every epoch."""
        return len(self.pids) // self.batch_size

    def epoch_indices(self, epoch: int) -> np.ndarray:
        """The images of an epoch for all processes, batch after batch.

        Args:
            epoch: from 0.

        Returns:
            (batches_per_epoch * batch_size,) int64, places in ``pids``. The same call gives the same answer.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define epoch_indices")

    def generator(self, epoch: int) -> np.random.Generator:
        """A fresh generator for ``epoch`` (from 0), a function of (seed, epoch)."""
        if epoch < 0:
            raise ValueError(f"epoch is {epoch}, expected a number >= 0")
        return np.random.default_rng([self.seed, epoch])

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is neither a torch sampler nor a batch sampler: it gives whole epochs by "
            f"epoch_indices(epoch); hand it to TrainLoader(samples, sampler, ...) instead of a DataLoader"
        )


def _integers(values: Sequence[int] | np.ndarray, name: str) -> np.ndarray:
    """``values`` as (N,) int64."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        kinds = sorted({type(value).__name__ for value in values})
        raise TypeError(f"{name} are of type {', '.join(kinds)}, expected integers; number the identities first")
    if array.ndim != 1:
        raise ValueError(f"{name} have shape {array.shape}, expected (N,)")
    return array.astype(np.int64)
