from __future__ import annotations

import torch
from torch.nn import functional as F

from fastreid_lite.modeling.layers.ibn import IBN
from fastreid_lite.modeling.layers.non_local import NonLocal
from fastreid_lite.modeling.layers.squeeze_excitation import SELayer


def test_ibn_normalises_the_first_half_by_image_and_the_rest_by_batch() -> None:
    maps = torch.randn(4, 6, 5, 3)
    normalised = IBN(6)(maps)
    by_image = (maps[:, :3] - maps[:, :3].mean((2, 3), keepdim=True)) / (
        maps[:, :3].var((2, 3), keepdim=True, unbiased=False) + 1e-5
    ).sqrt()
    assert torch.allclose(normalised[:, :3], by_image, atol=1e-5)
    assert torch.allclose(normalised[:, 3:], F.batch_norm(maps[:, 3:], None, None, training=True), atol=1e-5)


def test_a_new_non_local_block_changes_nothing() -> None:
    maps = torch.randn(2, 8, 4, 3)
    assert torch.equal(NonLocal(8, inner_channels=4)(maps), maps)


def test_a_non_local_block_equals_the_sum_over_positions() -> None:
    block = NonLocal(6, inner_channels=3).double().eval()
    torch.nn.init.normal_(block.W[1].weight)  # type: ignore[arg-type]
    maps = torch.randn(2, 6, 3, 2, dtype=torch.float64)
    query, key, value = (layer(maps).flatten(2) for layer in (block.theta, block.phi, block.g))
    mixed = torch.zeros_like(value)
    for i in range(6):
        for j in range(6):
            mixed[:, :, i] += (query[:, :, i] * key[:, :, j]).sum(1, keepdim=True) / 6 * value[:, :, j]
    expected = maps + block.W(mixed.unflatten(2, (3, 2)))
    assert torch.allclose(block(maps), expected, atol=1e-12)


def test_squeeze_and_excitation_scales_whole_channels() -> None:
    maps = torch.rand(2, 32, 4, 3) + 0.5
    ratio = SELayer(32)(maps) / maps
    assert torch.allclose(ratio, ratio[:, :, :1, :1].expand_as(ratio))
    assert bool(((ratio > 0) & (ratio < 1)).all())
