"""What the P x K samplers share: the identities, the checks, and P different ones in every batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from fastreid_lite.data.samplers.base import EpochSampler
from fastreid_lite.data.samplers.schedule import Allotment, place

_logger = logging.getLogger(__name__)


class IdentitySampler(EpochSampler):
    """Batches of P different identities with K images each (Hermans et al. 2017, "In defense of the triplet loss").

    P is ``batch_size / num_instances`` and K is ``num_instances``. The K images of an identity stand together, and no
    process's share of a batch cuts through them. How often an identity comes is a share of the draws given by
    :meth:`weights`; identities of equal weight are drawn equally often, to within one draw, over any run of whole
    epochs (save where an identity would have to stand twice in a batch: its place then goes to another).

    Args:
        pids, camids, batch_size, num_instances, seed, world_size: see :class:`EpochSampler`.

    Raises:
        ValueError: settings that cannot be met: a batch, or a process's share of it, that is no multiple of K, or fewer
            than P identities.
    """

    def __init__(
        self,
        pids: Sequence[int] | np.ndarray,
        camids: Sequence[int] | np.ndarray | None = None,
        *,
        batch_size: int,
        num_instances: int,
        seed: int,
        world_size: int = 1,
    ) -> None:
        super().__init__(
            pids, camids, batch_size=batch_size, seed=seed, num_instances=num_instances, world_size=world_size
        )
        self.order = self._grouped()
        _, self.first, self.count = np.unique(self.pids[self.order], return_index=True, return_counts=True)
        check_identity_batches(len(self.count), batch_size, num_instances, world_size)
        self.identities_per_batch = self.batch_size // self.num_instances
        self._allotment = Allotment(self.weights(), self.seed)

    def _grouped(self) -> np.ndarray:
        """(N,) places in ``pids``, sorted by identity."""
        return np.argsort(self.pids, kind="stable")

    def weights(self) -> np.ndarray:
        """(identities,) int64 >= 1, the shares of the draws, in the order of sorted pids."""
        raise NotImplementedError(f"{type(self).__name__} does not define weights")

    def draw_images(self, identities: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The images of each draw of an epoch.

        Args:
            identities: (T,) the identity of each draw, ascending; a place in the sorted pids.
            draws: (identities,) how often each occurs in ``identities``.
            rng: of this epoch.

        Returns:
            (T, K) places in ``order``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define draw_images")

    def epoch_indices(self, epoch: int) -> np.ndarray:
        rng = self.generator(epoch)
        draws = self._allotment.draws(epoch, self.batches_per_epoch, self.identities_per_batch, rng)
        identities = np.repeat(np.arange(len(draws)), draws)
        images = self.order[self.draw_images(identities, draws, rng)]
        return images[place(draws, self.batches_per_epoch, self.identities_per_batch, rng)].reshape(-1)


def check_identity_batches(num_identities: int, batch_size: int, num_instances: int, world_size: int) -> None:
    """Refuse settings under which no batch of P different identities with K images each exists.

    Raises:
        ValueError: which numbers do not go together.
    """
    keys = f"SOLVER.IMS_PER_BATCH {batch_size}, DATALOADER.NUM_INSTANCE {num_instances}"
    share = batch_size // world_size
    if share < num_instances:
        raise ValueError(
            f"a process's share of a batch, {share} images ({batch_size} over {world_size} processes), is smaller than "
            f"the {num_instances} images of one identity ({keys}); raise the first or lower the second"
        )
    if share % num_instances:
        raise ValueError(
            f"a process's share of a batch, {share} images ({batch_size} over {world_size} processes), is no multiple "
            f"of the {num_instances} images of an identity ({keys})"
        )
    wanted = batch_size // num_instances
    if num_identities < wanted:
        raise ValueError(
            f"a batch needs {wanted} different identities, but the training set has only {num_identities} ({keys}); "
            f"lower the first or raise the second"
        )
    if share == num_instances:
        _logger.warning(
            "each process sees a single identity in a batch (%s, %d processes): losses that compare identities within "
            "a process, such as the triplet loss, find no negatives",
            keys,
            world_size,
        )
