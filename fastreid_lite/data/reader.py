"""Reading one batch: what a loader worker does."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from fastreid_lite.data.images import ImageReadError, read_image
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.samples import Samples
from fastreid_lite.data.transforms.draws import sample_seed

SKIPPED = "_skipped"
"""Key under which a batch carries (path, reason) of each broken image that was replaced; the loader takes it out."""

_RENAMED = {"pid": "targets", "camid": "camids"}
_RESERVED = frozenset(("images", "targets", "camids", "img_paths", "indices", SKIPPED))
_MOST_NEIGHBOURS = 100


class BatchReader(Dataset[Any]):
    """Turns the triples (epoch, position, index) of a batch into a batch.

    Args:
        samples: where the images lie.
        preprocessor: what is done to them.
        train: True: the training transforms; else those of evaluation.
        seed: of the run; augmentation is a function of (seed, epoch, position). Unused where ``train`` is False.
        skip_broken: an image that cannot be read is replaced by the next one of its identity, in the order of
            ``samples`` and round about; where none can be read, by the next readable one of any identity. Else it is an
            error.

    Raises:
        ValueError: a column has the name of something else in a batch.
    """

    def __init__(
        self, samples: Samples, preprocessor: Preprocessor, *, train: bool, seed: int = 0, skip_broken: bool = False
    ) -> None:
        clash = sorted(_RESERVED & (set(samples.columns) - set(_RENAMED)))
        if clash:
            raise ValueError(f"the column {clash[0]!r} has the name of another part of a batch; rename it")
        self.samples = samples
        self.preprocessor = preprocessor
        self.is_train = train
        self.seed = seed
        self.skip_broken = skip_broken

    def __getitem__(self, triples: np.ndarray) -> dict[str, Any] | ImageReadError:
        """The batch of ``triples`` (B, 3); or the error, returned and not raised, so that it reaches the main process
        as the sentence it is, without a worker's traceback."""
        try:
            return self._read(triples.tolist())
        except ImageReadError as error:
            return error

    def _read(self, triples: list[list[int]]) -> dict[str, Any]:
        indices: list[int] = []
        skipped: list[tuple[str, str]] = []
        generator = torch.Generator()
        images, rows = None, None
        for row, (epoch, position, index) in enumerate(triples):
            image, index = self._open(index, skipped)
            if self.is_train:
                generator.manual_seed(sample_seed(self.seed, epoch, position))
                image = self.preprocessor.train(image, generator)
            else:
                image = self.preprocessor.test(image)
            if images is None or rows is None:
                images = _empty((len(triples), *image.shape))
                rows = images.numpy()
            if image.shape != images.shape[1:]:
                raise ValueError(
                    f"{self.samples.paths[index]!r} became {tuple(image.shape)} and the image before it in its batch "
                    f"{tuple(images.shape[1:])}; the transforms must bring all images to one size"
                )
            rows[row] = image.numpy()  # where channels are last, numpy moves them three times as fast as torch
            indices.append(index)
        batch = self._labels(indices)
        batch["images"] = images
        if skipped:
            batch[SKIPPED] = skipped
        return batch

    def _labels(self, indices: list[int]) -> dict[str, Any]:
        where = np.asarray(indices, dtype=np.int64)
        batch: dict[str, Any] = {
            _RENAMED.get(name, name): torch.from_numpy(values[where]) for name, values in self.samples.columns.items()
        }
        batch["img_paths"] = [self.samples.paths[index] for index in indices]
        batch["indices"] = torch.from_numpy(where)
        return batch

    def _open(self, index: int, skipped: list[tuple[str, str]]) -> tuple[torch.Tensor, int]:
        """The image ``index``, or its replacement, and the index of what was read."""
        try:
            return self._image(index), index
        except ImageReadError as error:
            if not self.skip_broken:
                raise
            skipped.append((self.samples.paths[index], str(error)))
        for other in self._replacements(index):
            try:
                return self._image(other), other
            except ImageReadError as error:
                skipped.append((self.samples.paths[other], str(error)))
        raise ImageReadError(
            f"cannot read image {self.samples.paths[index]!r} nor any of its identity, nor any of the "
            f"{_MOST_NEIGHBOURS} that follow: too many broken images to skip"
        )

    def _image(self, index: int) -> torch.Tensor:
        boxes = self.samples.boxes
        return read_image(self.samples.paths[index], None if boxes is None else boxes[index])

    def _replacements(self, index: int) -> list[int]:
        """A function of ``index`` alone, so that it is the same for any number of workers and processes."""
        pids = self.samples.pids
        same = np.flatnonzero(pids == pids[index])
        turn = int(np.searchsorted(same, index))
        own = [*same[turn + 1 :].tolist(), *same[:turn].tolist()]
        following = ((index + 1 + np.arange(min(_MOST_NEIGHBOURS, len(pids) - 1))) % len(pids)).tolist()
        return own + [other for other in following if pids[other] != pids[index]]


def _empty(shape: tuple[int, ...]) -> torch.Tensor:
    """Room for the images of a batch; in a worker in shared memory, which spares a copy on the way out."""
    if torch.utils.data.get_worker_info() is None:
        return torch.empty(shape, dtype=torch.uint8)
    return torch.empty(shape, dtype=torch.uint8).share_memory_()


def as_it_is(batch: Any) -> Any:
    """The loader's collate function: the reader gives whole batches."""
    return batch


def start_worker(worker: int) -> None:
    """What a worker does first: one thread, and deaf to signals that a cluster or Ctrl-C sends to all processes.

    The main process stops at the end of its step, and needs the worker until then. A second SIGTERM ends the worker, so
    that one which hangs in a read can be ended.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _first_is_ignored)


def _first_is_ignored(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
