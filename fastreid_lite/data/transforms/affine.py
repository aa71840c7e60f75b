"""Small turns, zooms and slants."""

from __future__ import annotations

import torch
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as TF

from fastreid_lite.data.transforms.crop import check_interval
from fastreid_lite.data.transforms.draws import between, uniforms


class RandomAffine:
    """Turn, zoom and slant about the middle; black where nothing comes from. Nearest neighbour, as fast-reid has it.

    Args:
        degrees: the angle is drawn from [-x, x]; x >= 0.
        scale: least and greatest zoom.
        shear: the slant along the rows is drawn from [-x, x], in degrees; x >= 0.
    """

    def __init__(self, *, degrees: float = 10.0, scale: tuple[float, float] = (0.9, 1.1), shear: float = 0.1) -> None:
        for name, value in (("degrees", degrees), ("shear", shear)):
            if value < 0:
                raise ValueError(f"{name} is {value!r}, expected a number of degrees >= 0")
        self.degrees = degrees
        self.scale = check_interval(scale, "scale")
        self.shear = shear

    def __call__(self, image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        turn, zoom, slant = uniforms(generator, 3)
        moved: torch.Tensor = TF.affine(
            image,
            angle=between(-self.degrees, self.degrees, turn),
            translate=[0, 0],
            scale=between(*self.scale, zoom),
            shear=[between(-self.shear, self.shear, slant), 0.0],
            interpolation=InterpolationMode.NEAREST,
            fill=[0.0, 0.0, 0.0],
        )
        return moved

    def __repr__(self) -> str:
        return f"RandomAffine(degrees={self.degrees}, scale={self.scale}, shear={self.shear})"
