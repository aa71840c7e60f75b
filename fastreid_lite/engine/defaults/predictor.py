"""Features of images outside of a dataset, by the preprocessing of training and evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from fastreid_lite.checkpoint import CheckpointError
from fastreid_lite.data.images import read_image
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.engine.defaults.from_config import without_pretrained
from fastreid_lite.engine.defaults.resuming import load_initial_weights
from fastreid_lite.engine.evaluator import evaluating
from fastreid_lite.modeling import build_model
from fastreid_lite.runtime import get_runtime


class DefaultPredictor:
    """Images to features: the model of a config with MODEL.WEIGHTS, and the preprocessing of its evaluation.

    >>> predictor = DefaultPredictor(cfg)                          # doctest: +SKIP
    >>> features = predictor(["query/a.jpg", "query/b.jpg"])       # doctest: +SKIP

    Args:
        cfg: MODEL, INPUT, TEST.IMS_PER_BATCH.

    Raises:
        CheckpointError: MODEL.WEIGHTS is empty, or cannot be used.
    """

    def __init__(self, cfg: Any) -> None:
        if not cfg.MODEL.WEIGHTS:
            raise CheckpointError("MODEL.WEIGHTS is empty: a prediction needs trained weights, give their file")
        self.runtime = get_runtime(cfg.MODEL.DEVICE)
        self.runtime.prepare()
        self.preprocessor = Preprocessor.from_config(cfg)
        self.batch_size = int(cfg.TEST.IMS_PER_BATCH)
        model = build_model(without_pretrained(cfg))
        load_initial_weights(model, cfg.MODEL.WEIGHTS, evaluating=True)
        self.model = self.runtime.move_module(model).eval()

    def __call__(self, images: Sequence[str | os.PathLike[str] | torch.Tensor]) -> torch.Tensor:
        """The features of ``images``, one row each.

        Args:
            images: files, or uint8 RGB tensors (3, H, W) of any size.

        Returns:
            (N, D) float32 on the host, not normalised; N may be 0.

        Raises:
            ImageReadError: a file is no image, with its path. TypeError, ValueError: a tensor of another kind.
        """
        if isinstance(images, str | os.PathLike):
            raise TypeError(f"expected a list of images, got the one path {os.fspath(images)!r}: put it into a list")
        rows = []
        with evaluating(self.model), torch.no_grad():
            for start in range(0, len(images), self.batch_size):
                batch = torch.stack([self._prepared(image) for image in images[start : start + self.batch_size]])
                rows.append(self.model(self.runtime.move_batch(batch)).float().cpu())
        return torch.cat(rows) if rows else torch.zeros(0, 0)

    def _prepared(self, image: str | os.PathLike[str] | torch.Tensor) -> torch.Tensor:
        if not isinstance(image, torch.Tensor):
            return self.preprocessor.test(read_image(image))
        if image.dtype is not torch.uint8:
            raise TypeError(f"an image has type {image.dtype}, expected uint8 RGB in 0..255")
        if image.dim() != 3 or image.shape[0] != 3:
            raise ValueError(f"an image has shape {tuple(image.shape)}, expected (3, H, W)")
        return self.preprocessor.test(image)
