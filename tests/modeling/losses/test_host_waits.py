"""Nothing in a training forward reads a value: on the meta device there are none, and reading one raises."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fastreid_lite.modeling.heads.embedding_head import EmbeddingHead
from fastreid_lite.modeling.layers.classifiers import ArcSoftmax, CircleSoftmax, CosSoftmax, Linear
from fastreid_lite.modeling.layers.pooling import GlobalAvgPool
from fastreid_lite.modeling.losses.build import CircleLoss, Cosface, CrossEntropyLoss, TripletLoss
from fastreid_lite.modeling.meta_arch.baseline import Baseline

LOSSES = [
    CrossEntropyLoss(eps=0.1),
    CrossEntropyLoss(eps=-1),
    *(
        TripletLoss(margin=m, norm_feat=n, hard_mining=h)
        for m in (0.3, 0.0)
        for n in (True, False)
        for h in (True, False)
    ),
    CircleLoss(),
    Cosface(),
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_never_waits_for_the_device(loss: Callable[..., dict[str, Tensor]]) -> None:
    outputs = {"cls_outputs": torch.empty(8, 4, device="meta"), "features": torch.empty(8, 6, device="meta")}
    for tensor in outputs.values():
        tensor.requires_grad_()
    (value,) = loss(outputs, torch.empty(8, dtype=torch.int64, device="meta")).values()
    value.backward()
    assert value.shape == ()


@pytest.mark.parametrize("layer", [Linear, CosSoftmax, ArcSoftmax, CircleSoftmax])
def test_a_training_step_never_waits_for_the_device(layer: type) -> None:
    heads = EmbeddingHead(6, num_classes=4, pool=GlobalAvgPool(), classifier=layer(scale=2.0, margin=0.1))
    losses = [CrossEntropyLoss(), TripletLoss()]
    model = Baseline(nn.Conv2d(3, 6, 1), heads, losses, pixel_mean=[1.0, 2.0, 3.0], pixel_std=[1.0, 2.0, 3.0]).to(
        "meta"
    )
    batch = {
        "images": torch.empty(8, 3, 4, 2, dtype=torch.uint8, device="meta"),
        "targets": torch.empty(8, dtype=torch.int64, device="meta"),
    }
    sum(model(batch).values()).backward()
