"""The one preprocessing object that training, evaluation and prediction share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fastreid_lite.config.input_size import Size, crop_size, resize_size
from fastreid_lite.data.transforms.affine import RandomAffine
from fastreid_lite.data.transforms.apply import RandomApply
from fastreid_lite.data.transforms.color import ColorJitter
from fastreid_lite.data.transforms.crop import CenterCrop, RandomResizedCrop
from fastreid_lite.data.transforms.draws import Transform
from fastreid_lite.data.transforms.erasing import RandomErasing
from fastreid_lite.data.transforms.flip import RandomHorizontalFlip
from fastreid_lite.data.transforms.pad import PadAndCrop
from fastreid_lite.data.transforms.resize import Resize


class Preprocessor:
    """From an image as read to the network's input, for training and for everything else.

    Outside of training, resizing is Pillow's to the bit; in training it is torch's, which is six times as fast and
    differs in the last bit of few pixels (see :func:`~fastreid_lite.data.transforms.resize.resize`).

    Args:
        size_train: (height, width) in pixels after resizing in training; one number: the shorter side, which needs a
            crop among ``after_resize``; None: as it is.
        size_test: the same elsewhere.
        before_resize: training transforms at the image's own size, in order.
        after_resize: training transforms after resizing, in order.
        crop_test: (height, width) of the middle part that is kept outside of training; None: all.
    """

    def __init__(
        self,
        size_train: Size | None,
        size_test: Size | None,
        *,
        before_resize: Sequence[Transform] = (),
        after_resize: Sequence[Transform] = (),
        crop_test: tuple[int, int] | None = None,
    ) -> None:
        resize_train = [] if size_train is None else [Resize(size_train, exact=False)]
        self.train_transforms: tuple[Transform, ...] = (*before_resize, *resize_train, *after_resize)
        self._resize_test = None if size_test is None else Resize(size_test)
        self._crop_test = None if crop_test is None else CenterCrop(crop_test)

    def train(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """(3, H, W) uint8 to the training input, (3, H', W') uint8: a function of the image and the generator."""
        for transform in self.train_transforms:
            image = transform(image, generator)
        return image

    def test(self, image: torch.Tensor) -> torch.Tensor:
        """(3, H, W) uint8 to the input for evaluation and prediction, (3, H', W') uint8."""
        if self._resize_test is not None:
            image = self._resize_test(image)
        return image if self._crop_test is None else self._crop_test(image)

    def __repr__(self) -> str:
        test = [step for step in (self._resize_test, self._crop_test) if step is not None]
        lines = [
            "train:",
            *(f"  {step!r}" for step in self.train_transforms),
            "test:",
            *(f"  {step!r}" for step in test),
        ]
        return "\n".join(lines)

    @classmethod
    def from_config(cls, cfg: Any) -> Preprocessor:
        """The transforms that INPUT switches on, in fast-reid's order: AutoAugment, resize, random resized crop, pad
        and crop, flip, colour jitter, affine, AugMix, erasing.

        Raises:
            ValueError: a value out of range, sizes that leave images of different sizes, or INPUT.RPT.
        """
        crop = crop_size(cfg)
        return cls(
            resize_size(cfg, "SIZE_TRAIN"),
            resize_size(cfg, "SIZE_TEST"),
            before_resize=_build_before_resize(cfg),
            after_resize=_build_after_resize(cfg, crop),
            crop_test=crop,
        )


def _build_before_resize(cfg: Any) -> list[Transform]:
    if not cfg.INPUT.AUTOAUG.ENABLED:
        return []
    from fastreid_lite.data.transforms.policies import (
        AutoAugment,
    )  # imported here: torchvision's policies are slow to load

    return [RandomApply(AutoAugment(), cfg.INPUT.AUTOAUG.PROB)]


def _build_after_resize(cfg: Any, crop: tuple[int, int] | None) -> list[Transform]:
    inputs = cfg.INPUT
    if inputs.RPT.ENABLED:
        raise ValueError(
            "INPUT.RPT.ENABLED is True, but random patches come from a pool of earlier images: an image would depend "
            "on what its worker saw before, and no run could be resumed or repeated exactly; use INPUT.REA instead"
        )
    steps: list[Transform] = []
    if crop is not None:
        steps.append(RandomResizedCrop(crop, scale=tuple(inputs.CROP.SCALE), ratio=tuple(inputs.CROP.RATIO)))
    if inputs.PADDING.ENABLED:
        steps.append(PadAndCrop(inputs.PADDING.SIZE, inputs.PADDING.MODE))
    if inputs.FLIP.ENABLED:
        steps.append(RandomHorizontalFlip(inputs.FLIP.PROB))
    if inputs.CJ.ENABLED:
        jitter = inputs.CJ
        strengths = {name: jitter[name.upper()] for name in ("brightness", "contrast", "saturation", "hue")}
        steps.append(ColorJitter(jitter.PROB, **strengths))
    if inputs.AFFINE.ENABLED:
        steps.append(RandomAffine())
    if inputs.AUGMIX.ENABLED:
        from fastreid_lite.data.transforms.policies import AugMix

        steps.append(RandomApply(AugMix(), inputs.AUGMIX.PROB))
    if inputs.REA.ENABLED:
        steps.append(RandomErasing(inputs.REA.PROB, value=inputs.REA.VALUE))
    return steps
