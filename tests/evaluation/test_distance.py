from __future__ import annotations

import numpy as np
import pytest
import torch

from fastreid_lite.evaluation.distance import ExactDistances, compute_distance
from tests.evaluation import naive


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_blocks_and_exact_pairs_equal_a_loop(metric: str) -> None:
    query, gallery = noise(5, 7) * 3, noise(6, 7, seed=1)
    right = np.array([[naive.distance(q, g, metric) for g in gallery.numpy()] for q in query.numpy()])
    np.testing.assert_allclose(compute_distance(query, gallery, metric).numpy(), right, rtol=1e-5, atol=1e-6)
    rows, columns = np.divmod(np.arange(30), 6)
    np.testing.assert_allclose(ExactDistances(query, gallery, metric)(rows, columns).reshape(5, 6), right, rtol=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_features_against_themselves_are_never_below_zero_nor_nan(metric: str) -> None:
    features = noise(200, 256) * 10
    distances = compute_distance(features, features, metric)
    assert torch.isfinite(distances).all() and (distances >= 0).all()


def test_metrics_order_alike_on_unit_vectors_and_not_otherwise() -> None:
    query, gallery = noise(20, 8), noise(50, 8, seed=1) * torch.rand(50, 1, generator=torch.Generator().manual_seed(2))
    orders = [compute_distance(query, gallery, metric).argsort(1) for metric in ("cosine", "euclidean")]
    assert not torch.equal(*orders)
    query, gallery = query / query.norm(dim=1, keepdim=True), gallery / gallery.norm(dim=1, keepdim=True)
    assert torch.equal(*(compute_distance(query, gallery, metric).argsort(1) for metric in ("cosine", "euclidean")))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("width", [1, 3, 130, 2048, 9001])
def test_equal_rows_have_equal_distances_whatever_is_asked_beside_them(metric: str, width: int) -> None:
    gallery = noise(40, width)
    gallery[31] = gallery[2]
    exact = ExactDistances(noise(1, width, seed=1), gallery, metric)
    together = exact(np.zeros(40, dtype=np.int64), np.arange(40))
    alone = [exact(np.array([0]), np.array([column]))[0] for column in range(40)]
    assert together.tolist() == alone
    assert together[2] == together[31]


def test_a_zero_vector_is_at_cosine_distance_one() -> None:
    zero, other = torch.zeros(1, 4), noise(1, 4)
    assert compute_distance(zero, other).item() == 1.0
    assert ExactDistances(zero, other)(np.array([0]), np.array([0])).item() == 1.0


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_lengths_do_not_matter_to_the_cosine(factor: float) -> None:
    query, gallery = noise(3, 5), noise(4, 5, seed=1)
    right = compute_distance(query, gallery)
    torch.testing.assert_close(compute_distance(query * factor, gallery), right)
    rows, columns = np.divmod(np.arange(12), 4)
    np.testing.assert_allclose(ExactDistances(query, gallery * factor)(rows, columns), right.flatten(), atol=1e-6)


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"TEST\.METRIC.*'jaccard'.*'cosine', 'euclidean'"):
        compute_distance(noise(1, 2), noise(1, 2), "jaccard")
