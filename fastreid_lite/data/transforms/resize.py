"""To one size: exactly as Pillow does it, or six times as fast and nearly so."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from fastreid_lite.data.transforms.draws import check_size


class Resize:
    """Bicubic with antialiasing.

    Args:
        size: (height, width) in pixels; or one number, to which the shorter side is brought, keeping the proportions.
        exact: True: Pillow's own, so that evaluation gives the numbers that it gave everywhere else. False: torch's
            kernel, for training; see :func:`resize`.
    """

    def __init__(self, size: tuple[int, int] | int, *, exact: bool = True) -> None:
        if isinstance(size, int):
            if size <= 0:
                raise ValueError(f"size is {size!r}, expected a positive number of pixels")
            self.size: tuple[int, int] | int = size
        else:
            self.size = check_size(size, "size")
        self.exact = exact

    def __call__(self, image: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        return resize(image, self._target(image), exact=self.exact)

    def _target(self, image: torch.Tensor) -> tuple[int, int]:
        if not isinstance(self.size, int):
            return self.size
        height, width = image.shape[1:]
        shorter = min(height, width)
        return int(self.size * height / shorter), int(self.size * width / shorter)

    def __repr__(self) -> str:
        return f"Resize(size={self.size}, bicubic, {'as Pillow' if self.exact else 'fast'})"


def resize(image: torch.Tensor, size: tuple[int, int], *, exact: bool) -> torch.Tensor:
    """(3, H, W) uint8 to (3, *size) uint8, bicubic with antialiasing.

    Pillow multiplies by weights of 22 bits, torch's kernel by weights of 15. On photographs of 128x64 that are doubled
    the two are equal; on white noise up to 1 % of the values differ, by 1 or 2. Where both sides shrink by different
    factors Pillow may take the vertical side first and torch never does; clipping in between then leaves larger
    differences at hard edges. An image costs 80 us in torch and 460 us in Pillow (to 256x128).

    The channels go in and come out last, as images are read: the kernel then needs no packing, which halves its time.
    """
    if tuple(image.shape[1:]) == size:
        return image
    rows = image.permute(1, 2, 0).contiguous()
    if exact:
        pillow = Image.fromarray(rows.numpy()).resize((size[1], size[0]), Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(pillow)).permute(2, 0, 1)
    # unsqueeze on rows, not on image: only so does the batch of one count as channels-last.
    batch = rows.unsqueeze(0).permute(0, 3, 1, 2)
    return F.interpolate(batch, size=size, mode="bicubic", antialias=True).squeeze(0)
