"""A random shift by padding and cropping."""

from __future__ import annotations

import numpy as np
import torch
from torchvision.transforms.v2 import functional as TF

from fastreid_lite.data.transforms.draws import uniforms
from fastreid_lite.utils.registry import lookup

_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


class PadAndCrop:
    """Pad every side, then cut out a window of the original size at a random place.

    Args:
        padding: pixels on each side, at least 0; "reflect" needs images larger than this.
        mode: "constant" (black), "edge", "reflect" or "symmetric".
    """

    def __init__(self, padding: int, mode: str = "constant") -> None:
        if not isinstance(padding, int) or padding < 0:
            raise ValueError(f"padding is {padding!r}, expected a number of pixels >= 0 (INPUT.PADDING.SIZE)")
        self.padding = padding
        try:
            self.mode = lookup(_MODES, mode, "padding mode", "INPUT.PADDING.MODE")  # type: ignore[arg-type]
        except KeyError as error:
            raise ValueError(error.args[0]) from None

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        places = 2 * self.padding + 1
        top, left = (int(drawn * places) for drawn in uniforms(generator, 2))
        if self.mode == "constant":
            return _shift(image, self.padding - top, self.padding - left)
        height, width = image.shape[1:]
        padded: torch.Tensor = TF.pad(image, [self.padding] * 4, padding_mode=self.mode)
        return padded[:, top : top + height, left : left + width]

    def __repr__(self) -> str:
        return f"PadAndCrop(padding={self.padding}, mode={self.mode!r})"


def _shift(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """``image`` moved, black where nothing comes from: padding with black and cropping without the large copy.

    In numpy, and with the channels first whatever they were: bringing them there costs nothing more on this occasion.
    """
    height, width = image.shape[1:]
    moved = np.zeros((3, height, width), dtype=np.uint8)
    rows, columns = max(height - abs(down), 0), max(width - abs(right), 0)
    moved[:, max(down, 0) : max(down, 0) + rows, max(right, 0) : max(right, 0) + columns] = image.numpy()[
        :, max(-down, 0) : max(-down, 0) + rows, max(-right, 0) : max(-right, 0) + columns
    ]
    return torch.from_numpy(moved)
