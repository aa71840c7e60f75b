from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.data.samples import Samples
from fastreid_lite.evaluation.protocol import Protocol
from fastreid_lite.evaluation.ranking import Ranking, rank_matches
from tests.evaluation import naive
from tests.evaluation.naive import samples

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "evaluation.npz"


def random_set(seed: int) -> tuple[torch.Tensor, torch.Tensor, Samples, Samples, str]:
    """Small sets with ties, junk, distractors, own images; every third without cameras, some of one item."""
    generator = np.random.default_rng(seed)
    queries, items = int(generator.integers(1, 9)), 1 if seed % 10 == 0 else int(generator.integers(1, 40))
    width = int(generator.integers(1, 20))
    if seed % 2:
        features = generator.integers(-2, 3, (queries + items, width)).astype(np.float32)
    else:
        features = generator.normal(size=(queries + items, width)).astype(np.float32)
        features[generator.integers(0, len(features), len(features) // 2)] = features[0]
    parts = []
    for name, count in (("q", queries), ("g", items)):
        camids = None if seed % 3 == 0 else generator.integers(0, 3, count)
        parts.append(samples(generator.integers(-1, 5, count), camids, name=name))
    paths = tuple(parts[0].paths[0] if generator.random() < 0.1 else path for path in parts[1].paths)
    gallery = Samples(paths, parts[1].columns)
    metric = "cosine" if seed % 4 < 2 else "euclidean"
    return torch.from_numpy(features[:queries]), torch.from_numpy(features[queries:]), parts[0], gallery, metric


def check(ranking: Ranking, expected: dict[int, list[bool]]) -> None:
    assert ranking.valid_queries.tolist() == list(expected)
    np.testing.assert_allclose(ranking.ap, [naive.ap(hits) for hits in expected.values()], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ranking.inp, [naive.inp(hits) for hits in expected.values()], rtol=0, atol=1e-9)
    assert ranking.first_ranks.tolist() == [hits.index(True) + 1 for hits in expected.values()]
    if expected:
        curve = ranking.cmc(50)
        np.testing.assert_allclose(curve, naive.cmc(expected, 50), rtol=0, atol=1e-9)
        assert (np.diff(curve) >= 0).all()


@pytest.mark.parametrize("part", range(6))
def test_random_sets_equal_a_loop(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        query_features, gallery_features, query, gallery, metric = random_set(seed)
        exclude_same = () if seed % 7 == 0 else ("camid",)
        protocol = Protocol(exclude_same=exclude_same)
        ranking = rank_matches(query_features, gallery_features, query, gallery, metric=metric, protocol=protocol)
        arrays = query_features.numpy(), gallery_features.numpy()
        check(ranking, naive.rank(*arrays, query, gallery, metric=metric, exclude_same=exclude_same))


def hard_features(kind: str, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features whose order float32 cannot tell."""
    generator = torch.Generator().manual_seed(width)
    query, gallery = (torch.randn(count, width, generator=generator) for count in (30, 500))
    if kind == "close":
        gallery = gallery[:20].repeat(25, 1) + 1e-6 * gallery
    elif kind == "one way":
        query, gallery = 1 + 1e-4 * query, 1 + 1e-4 * gallery
    elif kind == "dominated":
        query, gallery = query**7, gallery**7
    elif kind == "collapsed":
        query, gallery = torch.full_like(query, 0.1), torch.full_like(gallery, 0.1)
    return query, gallery


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("width", [16, 700])
@pytest.mark.parametrize("kind", ["normal", "close", "one way", "dominated", "collapsed"])
@pytest.mark.parametrize("factor", [1.0, 1e-20, 1e18])
def test_ranks_are_those_of_float64_where_float32_cannot_tell(
    kind: str, width: int, metric: str, factor: float
) -> None:
    generator = np.random.default_rng(0)
    query, gallery = samples(generator.integers(0, 9, 30)), samples(generator.integers(0, 9, 500), name="g")
    features = [part * factor for part in hard_features(kind, width)]
    ranking = rank_matches(features[0], features[1], query, gallery, metric=metric)
    wide = [part.double() for part in features]
    for place, row in enumerate(ranking.valid_queries):
        if metric == "euclidean":
            distances = ((wide[1] - wide[0][row]) ** 2).numpy().sum(axis=1)
        else:
            norms = [np.sqrt((part**2).numpy().sum(axis=1)) for part in wide]
            distances = 1.0 - (wide[1] * wide[0][row]).numpy().sum(axis=1) / norms[0][row] / norms[1]
        hits = gallery.pids == query.pids[row]
        order = np.lexsort((hits, distances))
        expected = np.flatnonzero(hits[order]) + 1
        assert ranking.ranks[ranking.begin[place] : ranking.begin[place + 1]].tolist() == expected.tolist()


def test_a_product_in_reduced_precision_changes_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    query, gallery = samples(generator.integers(0, 9, 30)), samples(generator.integers(0, 9, 500), name="g")
    features = hard_features("normal", 700)
    right = rank_matches(*features, query, gallery)
    product = torch.mm

    def rough(left: torch.Tensor, other: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return out.copy_(product(left.bfloat16(), other.bfloat16()))

    monkeypatch.setattr(torch, "mm", rough)
    assert rank_matches(*features, query, gallery).ranks.tolist() == right.ranks.tolist()


def test_more_than_one_tile_and_more_than_one_thread_change_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    query, gallery = samples(generator.integers(0, 9, 30)), samples(generator.integers(0, 9, 500), name="g")
    features = hard_features("close", 16)
    right = rank_matches(*features, query, gallery)
    monkeypatch.setattr("fastreid_lite.evaluation.counting._TILE_ROWS", 7)
    monkeypatch.setattr("fastreid_lite.evaluation.counting._TILE_COLUMNS", 33)
    monkeypatch.setattr("fastreid_lite.evaluation.counting._MOST_AMBIGUOUS", 5)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert rank_matches(*features, query, gallery).ranks.tolist() == right.ranks.tolist()


def test_rows_of_very_different_lengths_are_ranked_by_direction() -> None:
    generator = torch.Generator().manual_seed(0)
    query_features, gallery_features = torch.randn(5, 8, generator=generator), torch.randn(60, 8, generator=generator)
    query, gallery = samples([0, 1, 2, 3, 4]), samples([number % 5 for number in range(60)], name="g")
    right = rank_matches(query_features, gallery_features, query, gallery)
    lengths = torch.tensor([2.0**-100, 1.0, 2.0**100]).repeat(20)[:, None]
    assert (
        rank_matches(query_features, gallery_features * lengths, query, gallery).ranks.tolist() == right.ranks.tolist()
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats_are_taken_as_they_are(dtype: torch.dtype) -> None:
    query, gallery = samples([0]), samples([1, 0], name="g")
    close = torch.tensor([[1.0, 0.0], [1.0, 1e-9]] if dtype == torch.float64 else [[1.0, 0.0], [1.0, 0.5]], dtype=dtype)
    given = close.clone()
    ranking = rank_matches(torch.tensor([[1.0, 1.0]], dtype=dtype), close, query, gallery, metric="euclidean")
    assert ranking.ranks.tolist() == [1]
    assert torch.equal(close, given)


@pytest.mark.skipif(not GOLDEN.exists(), reason="the shared golden values are not here")
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("name", ["plain", "without_match", "ties"])
def test_golden_values(name: str, metric: str) -> None:
    from fastreid_lite.evaluation.distance import compute_distance

    golden: Any = np.load(GOLDEN)
    features = [torch.from_numpy(golden[f"{name}/{part}_features"]) for part in "qg"]
    query, gallery = (
        samples(golden[f"{name}/{part}_pids"], golden[f"{name}/{part}_camids"], name=part) for part in "qg"
    )
    distances, right = compute_distance(*features, metric).numpy(), golden[f"{name}/{metric}/dist"]
    scale = 1.0 if metric == "cosine" else np.abs(right).max()
    assert np.abs(distances - right).max() <= 1e-6 * scale
    ranking = rank_matches(*features, query, gallery, metric=metric)
    assert ranking.valid_queries.tolist() == golden[f"{name}/valid_queries"].tolist()
    for path, tolerance in (("cy", 1e-6), ("py", 1e-9)):
        np.testing.assert_allclose(ranking.cmc(50), golden[f"{name}/{metric}/cmc_{path}"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(ranking.ap, golden[f"{name}/{metric}/ap_{path}"], rtol=0, atol=tolerance)
        np.testing.assert_allclose(ranking.inp, golden[f"{name}/{metric}/inp_{path}"], rtol=0, atol=tolerance)


def line_up(pids: list[int], *, of: int = 1) -> Ranking:
    """One query at 0, the gallery at 1, 2, 3, ..."""
    gallery_features = torch.arange(1.0, len(pids) + 1)[:, None]
    return rank_matches(torch.zeros(1, 1), gallery_features, samples([of]), samples(pids, name="g"), metric="euclidean")


def test_average_precision_is_the_plain_one() -> None:
    assert line_up([2, 1, 3, 1]).ap.tolist() == [0.5]


def test_average_precision_at_k_is_divided_by_what_could_be_found() -> None:
    # Three relevant items; the ranking begins with a hit and a miss.
    assert line_up([1, 2, 1, 1]).average_precision(2).tolist() == [0.5]
    with pytest.raises(ValueError, match="at 0 asked, expected a rank from 1"):
        line_up([1]).average_precision(0)


def test_junk_leaves_before_ranking_and_distractors_stay() -> None:
    ranking = line_up([-1, 0, 1, 2])
    assert ranking.cmc(2).tolist() == [0.0, 1.0]
    assert ranking.ap.tolist() == [0.5]


def test_non_matches_at_the_distance_of_a_match_stand_before_it() -> None:
    query, gallery = samples([1]), samples([1, 2, 1, 2], name="g")
    ranking = rank_matches(torch.ones(1, 3), torch.ones(4, 3), query, gallery)
    assert ranking.ranks.tolist() == [3, 4]


def test_the_curve_goes_on_level_behind_a_small_gallery() -> None:
    assert line_up([2, 1]).cmc(10).tolist() == [0.0] + [1.0] * 9
    with pytest.raises(ValueError, match="max_rank is 0"):
        line_up([1]).cmc(0)


def test_queries_without_a_match_are_counted_by_reason() -> None:
    query, gallery = samples([1, 2, 3], [0, 0, 0]), samples([1, 2], [1, 0], name="g")
    ranking = rank_matches(torch.rand(3, 2), torch.rand(2, 2), query, gallery)
    assert (ranking.valid_queries.tolist(), ranking.asked) == ([0], 3)
    assert (ranking.without_identity, ranking.filtered) == (1, 1)


def test_with_no_match_at_all_nothing_breaks() -> None:
    ranking = line_up([2, 3])
    assert np.isnan(ranking.cmc(5)).all()
    assert len(ranking.ap) == len(ranking.inp) == len(ranking.first_ranks) == 0


def test_features_that_are_not_finite_are_refused_with_counts_and_a_path() -> None:
    features = torch.rand(4, 2)
    features[2, 1] = float("nan")
    features[3, 0] = float("inf")
    with pytest.raises(ValueError, match=r"0 of 1 queries and 2 of 4 gallery images.*'g2\.jpg'"):
        rank_matches(torch.rand(1, 2), features, samples([1]), samples([1] * 4, name="g"))
    with pytest.raises(ValueError, match=r"1 of 4 queries and 0 of 1 gallery images.*'q2\.jpg'"):
        rank_matches(features[[0, 1, 2, 0]], torch.rand(1, 2), samples([1] * 4), samples([1], name="g"))


def test_shapes_that_disagree_are_refused() -> None:
    query, gallery = samples([1]), samples([1, 2], name="g")
    with pytest.raises(ValueError, match=r"gallery features are torch.float32 of shape \(3, 2\).*\(2, D\)"):
        rank_matches(torch.rand(1, 2), torch.rand(3, 2), query, gallery)
    with pytest.raises(ValueError, match="query features are torch.int64"):
        rank_matches(torch.ones(1, 2, dtype=torch.int64), torch.rand(2, 2), query, gallery)
    with pytest.raises(ValueError, match="query features have 3 columns, gallery features 2"):
        rank_matches(torch.rand(1, 3), torch.rand(2, 2), query, gallery)


MEMORY = """
import resource, numpy as np, torch
from fastreid_lite.evaluation.ranking import rank_matches
from tests.evaluation.naive import samples
def run(queries, items):
    generator = np.random.default_rng(0)
    query, gallery = (
        samples(generator.integers(0, 500, n), generator.integers(0, 6, n), name=str(n)) for n in (queries, items)
    )
    features = [torch.randn(n, 64) for n in (queries, items)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rank_matches(*features, query, gallery)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
run(20, 200)
print(run(2000, 20000))
"""


@pytest.mark.slow
def test_a_large_set_takes_less_memory_than_its_distances() -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", MEMORY], cwd=root, capture_output=True, text=True, check=True)
    # The float32 distances would be 160 MB.
    assert float(done.stdout) < 120
