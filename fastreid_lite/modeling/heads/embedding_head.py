"""Pooling, an optional reduction, a BNNeck, and a classifier in training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fastreid_lite.modeling.layers.classifiers import CLASSIFIER_REGISTRY, Classifier
from fastreid_lite.modeling.layers.initialization import init_kaiming
from fastreid_lite.modeling.layers.norm import get_norm
from fastreid_lite.modeling.layers.pooling import POOLING_REGISTRY
from fastreid_lite.modeling.precision import autocast_off, widened
from fastreid_lite.modeling.registries import HEADS_REGISTRY

NECK_FEATS = ("before", "after")


class ClassifierHead(nn.Module):
    """What heads with a classifier share: pooling, the classifier's weight (classes, D), and its two kinds of scores.

    Args:
        feat_dim: channels of the map, after pooling.
        num_classes: number of identities; 0 makes no classifier, which is enough for evaluation.
        pool: from (B, C, h, w) to (B, feat_dim, 1, 1).
        classifier: from products or cosines to scores.
        embedding_dim: D, size of the feature that is classified; 0 for ``default_dim``.
        default_dim: see ``embedding_dim``.

    Raises:
        ValueError: ``num_classes`` or ``embedding_dim`` is negative.
    """

    def __init__(
        self,
        feat_dim: int,
        *,
        num_classes: int,
        pool: nn.Module,
        classifier: Classifier,
        embedding_dim: int,
        default_dim: int,
    ) -> None:
        super().__init__()
        if embedding_dim < 0:
            raise ValueError(f"MODEL.HEADS.EMBEDDING_DIM must be 0 or more, got {embedding_dim}")
        if num_classes < 0:
            raise ValueError(f"MODEL.HEADS.NUM_CLASSES must be 0 or more, got {num_classes}")
        self.feat_dim = feat_dim
        self.dim = embedding_dim or default_dim
        self.cls_layer = classifier
        self.pool_layer = pool
        self.weight = nn.Parameter(torch.empty(num_classes, self.dim)) if num_classes else None
        if self.weight is not None:
            nn.init.normal_(self.weight, std=0.01)

    @classmethod
    def from_config(cls, cfg: Any, feat_dim: int) -> dict[str, Any]:
        """Keyword arguments from MODEL.HEADS.

        Where POOL_LAYER is "Flatten" the width depends on the size of the map, and MODEL.BACKBONE.FEAT_DIM says it.
        """
        settings = cfg.MODEL.HEADS
        return {
            "feat_dim": cfg.MODEL.BACKBONE.FEAT_DIM if settings.POOL_LAYER == "Flatten" else feat_dim,
            "num_classes": settings.NUM_CLASSES,
            "pool": POOLING_REGISTRY.get(settings.POOL_LAYER)(),
            "classifier": CLASSIFIER_REGISTRY.get(settings.CLS_LAYER)(scale=settings.SCALE, margin=settings.MARGIN),
            "embedding_dim": settings.EMBEDDING_DIM,
        }

    def pooled(self, maps: Tensor) -> Tensor:
        """(B, C, h, w) to (B, feat_dim, 1, 1).

        Raises:
            ValueError: the pooling layer left more than one position, or another number of channels.
        """
        pooled: Tensor = self.pool_layer(maps)
        if pooled.shape[2:] != (1, 1):
            raise ValueError(
                f"the pooling layer {type(self.pool_layer).__name__} (MODEL.HEADS.POOL_LAYER) left a map of "
                f"{tuple(pooled.shape[2:])}, and a feature is one position; choose a pooling layer that gives one"
            )
        if pooled.shape[1] != self.feat_dim:
            raise ValueError(
                f"the pooling layer {type(self.pool_layer).__name__} (MODEL.HEADS.POOL_LAYER) gives {pooled.shape[1]} "
                f"channels for a map {tuple(maps.shape[1:])}, but the head was made for {self.feat_dim}; set "
                f"MODEL.BACKBONE.FEAT_DIM to {pooled.shape[1]} (it is read where POOL_LAYER is Flatten)"
            )
        return pooled

    def scores(self, features: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """``cls_outputs`` and ``pred_class_logits``, each (B, classes); empty where there is no classifier.

        Args:
            features: (B, D).
            targets: (B,) int64, each in 0..classes-1.
        """
        if self.weight is None:
            return {}
        if self.cls_layer.normalized:
            # Half precision has two or three digits, and a scale of 64 would make the rest of a cosine felt.
            with autocast_off(features):
                cosines = F.linear(F.normalize(widened(features)), F.normalize(widened(self.weight)))
                cls_outputs = self.cls_layer(cosines, targets)
            logits = cosines
        else:
            logits = F.linear(features, self.weight)
            cls_outputs = self.cls_layer(logits, targets)
        return {"cls_outputs": cls_outputs, "pred_class_logits": logits.detach() * self.cls_layer.scale}


@HEADS_REGISTRY.register()
class EmbeddingHead(ClassifierHead):
    """The head of the bag of tricks. Luo et al., Bag of tricks, CVPR workshops 2019, section 3.5.

    State-dict names are fast-reid's: ``weight``, ``pool_layer.*``, ``bottleneck.*``. The bias of the BNNeck exists, is
    0 and does not train.

    Args:
        feat_dim: channels of the map.
        num_classes: number of identities; 0 makes no classifier, which is enough for evaluation.
        pool: from (B, feat_dim, h, w) to (B, feat_dim, 1, 1).
        classifier: from products or cosines to scores.
        embedding_dim: channels after a 1x1 convolution between pooling and neck; 0 for no such convolution.
        with_bnneck: put a norm before the classifier.
        norm: name of that norm.
        neck_feat: which feature the losses between images see in training: "before" (the pooled one) or "after" the
            neck. In evaluation the feature after the neck is given, whatever this says.

    Raises:
        ValueError: ``neck_feat`` is neither of the two, or a size is negative.
        KeyError: ``norm`` is not known.
    """

    def __init__(
        self,
        feat_dim: int,
        *,
        num_classes: int,
        pool: nn.Module,
        classifier: Classifier,
        embedding_dim: int = 0,
        with_bnneck: bool = True,
        norm: str = "BN",
        neck_feat: str = "before",
    ) -> None:
        if neck_feat not in NECK_FEATS:
            raise ValueError(f"MODEL.HEADS.NECK_FEAT must be one of {', '.join(NECK_FEATS)}, got {neck_feat!r}")
        super().__init__(
            feat_dim,
            num_classes=num_classes,
            pool=pool,
            classifier=classifier,
            embedding_dim=embedding_dim,
            default_dim=feat_dim,
        )
        self.neck_feat = neck_feat
        layers: list[nn.Module] = []
        if embedding_dim:
            layers.append(nn.Conv2d(feat_dim, embedding_dim, kernel_size=1, bias=False))
        if with_bnneck:
            layers.append(get_norm(norm, self.dim, bias_freeze=True))
        self.bottleneck = nn.Sequential(*layers)
        init_kaiming(self.bottleneck)

    @classmethod
    def from_config(cls, cfg: Any, feat_dim: int) -> dict[str, Any]:
        """Keyword arguments from MODEL.HEADS; see :meth:`ClassifierHead.from_config`."""
        settings = cfg.MODEL.HEADS
        return {
            **super().from_config(cfg, feat_dim),
            "with_bnneck": settings.WITH_BNNECK,
            "norm": settings.NORM,
            "neck_feat": settings.NECK_FEAT,
        }

    def forward(self, maps: Tensor, targets: Tensor | None = None) -> Any:
        """Features (B, D) in evaluation; in training the dict that ``HEADS_REGISTRY`` describes.

        Args:
            maps: (B, feat_dim, h, w).
            targets: (B,) int64; needed in training only.

        Raises:
            ValueError: see :meth:`ClassifierHead.pooled`.
        """
        pooled = self.pooled(maps)
        feature = self.bottleneck(pooled).flatten(1)
        if not self.training:
            return feature
        assert targets is not None, "a head in training needs the targets"
        seen = pooled.flatten(1) if self.neck_feat == "before" else feature
        return {**self.scores(feature, targets), "features": seen}
