"""One backbone, one head, any number of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fastreid_lite.modeling.backbones.build import build_backbone
from fastreid_lite.modeling.heads.build import build_heads
from fastreid_lite.modeling.losses.build import Loss, build_losses
from fastreid_lite.modeling.precision import autocast_off
from fastreid_lite.modeling.registries import META_ARCH_REGISTRY


@META_ARCH_REGISTRY.register()
class Baseline(nn.Module):
    """From images as they are read to losses in training, and to features in evaluation.

    Args:
        backbone: from (B, 3, H, W), normalised, to (B, C, h, w).
        heads: from that map to features, and to the outputs that losses need; see ``HEADS_REGISTRY``.
        losses: see ``LOSS_REGISTRY``; may be empty for evaluation.
        pixel_mean: what is taken from each channel (R, G, B), in units of 0..255.
        pixel_std: by what it is then divided. Both go with the model to its device and are not in its state dict.

    Raises:
        ValueError: ``pixel_mean`` and ``pixel_std`` differ in length, or a deviation is not above 0.
    """

    pixel_mean: Tensor
    pixel_std: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        heads: nn.Module,
        losses: Sequence[Loss],
        *,
        pixel_mean: Sequence[float],
        pixel_std: Sequence[float],
    ) -> None:
        super().__init__()
        if len(pixel_mean) != len(pixel_std) or not all(value > 0 for value in pixel_std):
            raise ValueError(
                "MODEL.PIXEL_MEAN and MODEL.PIXEL_STD need one number a channel each, the latter above 0, got "
                f"{list(pixel_mean)} and {list(pixel_std)}"
            )
        self.backbone = backbone
        self.heads = heads
        self.loss_functions = list(losses)
        # Losses with parameters train with the model.
        self.loss_modules = nn.ModuleList(loss for loss in losses if isinstance(loss, nn.Module))
        self.register_buffer("pixel_mean", torch.tensor(pixel_mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("pixel_std", torch.tensor(pixel_std).view(1, -1, 1, 1), persistent=False)

    @classmethod
    def from_config(cls, cfg: Any) -> dict[str, Any]:
        """Keyword arguments from MODEL."""
        backbone = build_backbone(cfg)
        return {
            "backbone": backbone,
            "heads": build_heads(cfg, backbone.feat_dim),  # type: ignore[arg-type]
            "losses": build_losses(cfg),
            "pixel_mean": [float(value) for value in cfg.MODEL.PIXEL_MEAN],
            "pixel_std": [float(value) for value in cfg.MODEL.PIXEL_STD],
        }

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.pixel_mean.device

    def forward(self, batch: dict[str, Any] | Tensor) -> Any:
        """Losses by name in training; features (B, D), float32 at least, in evaluation.

        Args:
            batch: ``{"images": (B, 3, H, W) uint8 or float in 0..255, "targets": (B,) int64, ...}``; targets, in
                0..classes-1, are read in training only. In evaluation the images alone will do. Nothing is changed in
                place.

        Raises:
            KeyError: no images, or no targets in training.
        """
        images = self.preprocess(_images_of(batch))
        if not self.training:
            features: Tensor = self.heads(self.backbone(images))
            return features.float() if features.dtype in (torch.float16, torch.bfloat16) else features
        if not isinstance(batch, dict) or "targets" not in batch:
            raise KeyError(
                "a model in training mode needs the batch as a dict with 'targets', the labels of its images; call "
                "model.eval() to get features"
            )
        targets = batch["targets"].to(self.device)
        outputs = self.heads(self.backbone(images), targets)
        losses: dict[str, Tensor] = {}
        for loss in self.loss_functions:
            losses.update(loss(outputs, targets))
        return losses

    def preprocess(self, images: Tensor) -> Tensor:
        """``(images - mean) / std`` as a new tensor, on the model's device and in its precision."""
        with autocast_off(self.pixel_mean):
            return (images.to(self.pixel_mean) - self.pixel_mean) / self.pixel_std


def _images_of(batch: dict[str, Any] | Tensor) -> Tensor:
    if isinstance(batch, Tensor):
        return batch
    if "images" not in batch:
        raise KeyError(f"a batch needs 'images', this one has {sorted(batch)}")
    images: Tensor = batch["images"]
    return images
