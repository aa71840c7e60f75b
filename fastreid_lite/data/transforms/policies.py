"""Learned and mixed augmentation policies, from torchvision."""

from __future__ import annotations

from torchvision.transforms import v2

from fastreid_lite.data.transforms.foreign import ForeignTransform


class AutoAugment(ForeignTransform):
    """The ImageNet policy of Cubuk et al. 2019, "AutoAugment": one of 25 pairs of operations."""

    def __init__(self) -> None:
        super().__init__(v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET), takes="tensor")


class AugMix(ForeignTransform):
    """A mix of several chains of operations with the image (Hendrycks et al. 2020, "AugMix", algorithm 1).

    Only operations that move or quantise pixels, not those that change colours, as in the paper.

    Args:
        severity: of the operations, 1 to 10.
        width: number of chains.
        depth: operations in a chain.
        alpha: of the Dirichlet and Beta distributions of the weights.
    """

    def __init__(self, *, severity: int = 1, width: int = 3, depth: int = 1, alpha: float = 0.1) -> None:
        mix = v2.AugMix(severity=severity, mixture_width=width, chain_depth=depth, alpha=alpha, all_ops=False)
        super().__init__(mix, takes="tensor")
