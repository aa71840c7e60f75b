"""The head with which OSNet was published: pooling, one fully connected layer, a classifier."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fastreid_lite.modeling.heads.embedding_head import ClassifierHead
from fastreid_lite.modeling.layers.classifiers import Classifier
from fastreid_lite.modeling.layers.initialization import init_kaiming
from fastreid_lite.modeling.registries import HEADS_REGISTRY

_DEFAULT_DIM = 512


@HEADS_REGISTRY.register()
class OSNetHead(ClassifierHead):
    """Pooling, then a linear layer, batch norm and ReLU; the result is the feature for everything.

    Zhou et al., Omni-scale feature learning, ICCV 2019, table 1. Its classifier here has no bias. NORM,
    WITH_BNNECK and NECK_FEAT of MODEL.HEADS are not read.

    Args:
        feat_dim: channels of the map.
        num_classes: number of identities; 0 makes no classifier.
        pool: from (B, feat_dim, h, w) to (B, feat_dim, 1, 1).
        classifier: from products or cosines to scores.
        embedding_dim: size of the feature; 0 for 512.

    Raises:
        ValueError: a size is negative.
    """

    def __init__(
        self, feat_dim: int, *, num_classes: int, pool: nn.Module, classifier: Classifier, embedding_dim: int = 0
    ) -> None:
        super().__init__(
            feat_dim,
            num_classes=num_classes,
            pool=pool,
            classifier=classifier,
            embedding_dim=embedding_dim,
            default_dim=_DEFAULT_DIM,
        )
        self.fc = nn.Sequential(nn.Linear(feat_dim, self.dim), nn.BatchNorm1d(self.dim), nn.ReLU(inplace=True))
        init_kaiming(self.fc)

    def forward(self, maps: Tensor, targets: Tensor | None = None) -> Any:
        """Features (B, D) in evaluation; in training the dict that ``HEADS_REGISTRY`` describes.

        Raises:
            ValueError: see :meth:`ClassifierHead.pooled`.
        """
        feature = self.fc(self.pooled(maps).flatten(1))
        if not self.training:
            return feature
        assert targets is not None, "a head in training needs the targets"
        return {**self.scores(feature, targets), "features": feature}


def from_osnet_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of OSNet's authors under the names of a Baseline with OSNet and :class:`OSNetHead`.

    Args:
        state: tensors by name: ``conv1.*`` to ``conv5.*``, ``fc.*``, ``classifier.*``.

    Returns:
        The same tensors under new names; the classifier's bias is left out.
    """
    renamed = {}
    for name, value in state.items():
        if name.startswith("fc."):
            renamed[f"heads.{name}"] = value
        elif name == "classifier.weight":
            renamed["heads.weight"] = value
        elif not name.startswith("classifier."):
            renamed[f"backbone.{name}"] = value
    return renamed
