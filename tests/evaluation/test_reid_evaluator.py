from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
import torch
from yacs.config import CfgNode

from fastreid_lite.evaluation.protocol import Protocol
from fastreid_lite.evaluation.ranking import rank_matches
from fastreid_lite.evaluation.reid_evaluator import ReidEvaluator
from fastreid_lite.utils import comm
from tests.evaluation.naive import samples
from tests.processes import run_processes

KEYS = ["Rank-1", "Rank-5", "Rank-10", "mAP", "mINP", "metric"]


def make(queries: int, items: int, seed: int = 0, **options: Any) -> tuple[ReidEvaluator, torch.Tensor]:
    generator = np.random.default_rng(seed)
    parts = [
        samples(generator.integers(0, 4, count), generator.integers(0, 3, count), name=name)
        for name, count in (("q", queries), ("g", items))
    ]
    features = torch.from_numpy(generator.normal(size=(queries + items, 16)).astype(np.float32))
    return ReidEvaluator(*parts, **options), features


def feed(evaluator: ReidEvaluator, features: torch.Tensor, indices: Any, batch_size: int = 3) -> None:
    for part in torch.as_tensor(indices, dtype=torch.int64).split(batch_size):
        evaluator.process({"indices": part}, features[part])


def test_results_are_percent_and_do_not_depend_on_the_order_of_batches() -> None:
    evaluator, features = make(9, 40)
    feed(evaluator, features, range(49))
    results = evaluator.evaluate()
    assert list(results) == KEYS
    assert all(isinstance(value, float) for value in results.values())
    ranking = rank_matches(features[:9], features[9:], evaluator.query, evaluator.gallery)
    assert results["mAP"] == pytest.approx(100 * ranking.ap.mean(), abs=1e-9)
    assert results["mINP"] == pytest.approx(100 * ranking.inp.mean(), abs=1e-9)
    assert results["Rank-5"] == pytest.approx(100 * ranking.cmc(5)[4], abs=1e-9)
    assert results["metric"] == pytest.approx((results["mAP"] + results["Rank-1"]) / 2, abs=1e-9)
    assert evaluator.evaluate() == results
    evaluator.reset()
    feed(evaluator, features, np.random.default_rng(1).permutation(49), batch_size=7)
    assert evaluator.evaluate() == results


def test_features_are_copied_from_the_model_s_memory() -> None:
    evaluator, features = make(2, 6)
    memory = torch.empty(1, 16)
    for index in range(8):
        memory.copy_(features[index])
        evaluator.process({"indices": torch.tensor([index])}, memory)
    again, _ = make(2, 6)
    feed(again, features, range(8))
    assert evaluator.evaluate() == again.evaluate()


#: Queries, gallery, trials; the last process of four gets nothing, nor do others where there is next to nothing.
SETS = [(5, 8, 0), (1, 2, 0), (20, 120, 0), (20, 120, 2)]


def on_a_process() -> list[tuple[dict[str, float], list[float], list[float]]]:
    answers = []
    for queries, items, trials in SETS:
        evaluator, features = make(queries, items, seed=7, protocol=Protocol(trials=trials))
        owners = np.random.default_rng(0).integers(0, min(comm.get_world_size(), 3), queries + items)
        feed(evaluator, features, np.flatnonzero(owners == comm.get_rank()))
        results = evaluator.evaluate()
        assert evaluator.curve is not None
        answers.append((results, evaluator.curve.tolist(), evaluator.rankings[-1].ap.tolist()))
    return answers


def test_the_number_of_processes_changes_nothing() -> None:
    alone = on_a_process()
    assert not any(math.isnan(results["mAP"]) for results, _, _ in alone)
    for world_size in (2, 3, 4):
        assert run_processes(on_a_process, world_size) == [alone] * world_size


BROKEN = {
    "nan": "0 of 4 queries and 1 of 12 gallery images are not finite, the first is that of 'g5.jpg'",
    "missing": "of 16 images 1 gave no features and 0 gave them more than once, the first is 'g11.jpg'",
    "repeated": "of 16 images 0 gave no features and 1 gave them more than once, the first is 'q1.jpg'",
    "width": "the processes gave features with [8, 16] columns",
}


def broken_on_one_process() -> list[str]:
    said = []
    for kind in BROKEN:
        evaluator, features = make(4, 12)
        mine = [index for index in range(16) if index % 2 == comm.get_rank()]
        if comm.get_rank() == 1:
            if kind == "nan":
                features[9] = float("nan")
            mine = mine[:-1] if kind == "missing" else mine + mine[:1] if kind == "repeated" else mine
            features = features[:, :8] if kind == "width" else features
        feed(evaluator, features, mine)
        with pytest.raises(ValueError) as caught:
            evaluator.evaluate()
        said.append(str(caught.value))
    return said


def test_what_is_wrong_on_one_process_is_said_on_all() -> None:
    first, second = run_processes(broken_on_one_process, 2)
    assert first == second
    for sentence, expected in zip(first, BROKEN.values()):
        assert expected in sentence


def test_a_single_camera_is_reported_not_fatal(caplog: pytest.LogCaptureFixture) -> None:
    query, gallery = samples([1, 2, 7], [0, 0, 0]), samples([1, 2, 2], [0, 0, 0], name="g")
    evaluator = ReidEvaluator(query, gallery)
    feed(evaluator, torch.rand(6, 4), range(6))
    results = evaluator.evaluate()
    assert list(results) == KEYS
    assert all(math.isnan(value) for value in results.values())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    for part in (
        "the filter removed all matches",
        "of 3 queries, 1 have no image",
        "of 2 every match",
        "EXCLUDE_SAME ()",
    ):
        assert part in caplog.text


def test_with_the_filter_off_a_query_does_not_match_its_own_file() -> None:
    images = samples([1, 1, 2, 2], [0] * 4)
    features = torch.tensor([[0.0], [3.0], [1.0], [5.0]])
    evaluator = ReidEvaluator(images, images, metric="euclidean", protocol=Protocol(exclude_same=()))
    feed(evaluator, features.repeat(2, 1), range(8))
    evaluator.evaluate()
    assert evaluator.rankings[0].ranks.tolist() == [2, 3, 3, 2]


def test_a_gallery_without_any_identity_of_the_query_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    evaluator = ReidEvaluator(samples([1]), samples([2], name="g"))
    feed(evaluator, torch.rand(2, 4), range(2))
    assert math.isnan(evaluator.evaluate()["mAP"])
    assert "no query has a match" in caplog.text


def test_queries_that_do_not_count_are_said(caplog: pytest.LogCaptureFixture) -> None:
    query, gallery = samples([1, 2, 3], [0, 0, 0]), samples([1, 2], [1, 0], name="g")
    evaluator = ReidEvaluator(query, gallery)
    feed(evaluator, torch.rand(5, 4), range(5))
    with caplog.at_level(logging.INFO):
        evaluator.evaluate()
    assert "1 of 3 queries count: 1 have no image of their identity" in caplog.text


def test_trials_are_means_over_draws() -> None:
    evaluator, features = make(20, 120, protocol=Protocol(exclude_same=(), trials=4))
    feed(evaluator, features, range(140))
    results = evaluator.evaluate()
    parts = []
    for trial in range(4):
        kept = evaluator.protocol.gallery_mask(evaluator.gallery, trial)
        gallery = samples(evaluator.gallery.columns["pid"][kept], name="g")
        parts.append(rank_matches(features[:20], features[20:][torch.from_numpy(kept)], evaluator.query, gallery))
    assert results["mAP"] == pytest.approx(100 * np.mean([part.ap.mean() for part in parts]), abs=1e-9)
    assert results["Rank-1"] == pytest.approx(100 * np.mean([part.cmc(1)[0] for part in parts]), abs=1e-9)


def test_indices_outside_the_images_are_refused() -> None:
    evaluator, features = make(1, 1)
    evaluator.process({"indices": torch.tensor([0, 1, 2])}, torch.rand(3, 4))
    with pytest.raises(ValueError, match="index 2, expected positions below 2: 1 queries, then 1 gallery"):
        evaluator.evaluate()


def test_no_features_at_all_is_a_missing_image() -> None:
    evaluator, _ = make(2, 3)
    with pytest.raises(ValueError, match="of 5 images 5 gave no features"):
        evaluator.evaluate()


def test_shapes_that_disagree_are_refused_at_once() -> None:
    evaluator, _ = make(2, 3)
    with pytest.raises(ValueError, match=r"shape \(2, 4\) for 3 images, expected \(3, D\)"):
        evaluator.process({"indices": torch.arange(3)}, torch.rand(2, 4))
    evaluator.process({"indices": torch.arange(3)}, torch.rand(3, 4))
    with pytest.raises(ValueError, match="5 columns after 4 before"):
        evaluator.process({"indices": torch.arange(3, 5)}, torch.rand(2, 5))


def test_bad_arguments_are_refused_at_construction() -> None:
    some, none = samples([1]), samples([])
    with pytest.raises(ValueError, match="the query is empty"):
        ReidEvaluator(none, some)
    with pytest.raises(ValueError, match="the gallery is empty"):
        ReidEvaluator(some, none)
    with pytest.raises(ValueError, match="TEST.METRIC.*'manhattan'"):
        ReidEvaluator(some, some, metric="manhattan")
    with pytest.raises(ValueError, match="max_rank is 5, expected at least 10"):
        ReidEvaluator(some, some, max_rank=5)


def config(**test: Any) -> CfgNode:
    sections = {name: CfgNode({"ENABLED": test.pop(name, False)}) for name in ("RERANK", "AQE", "ROC")}
    return CfgNode({"TEST": CfgNode({"METRIC": "cosine", "EXCLUDE_SAME": ["camid"], **sections, **test})})


def test_the_config_names_metric_and_filter() -> None:
    some = samples([1])
    evaluator = ReidEvaluator.from_config(config(METRIC="euclidean", EXCLUDE_SAME=()), some, some)
    assert (evaluator.metric, evaluator.protocol.exclude_same) == ("euclidean", ())
    assert ReidEvaluator.from_config(config(), some, some).protocol == Protocol()
    with pytest.raises(TypeError, match="TEST.EXCLUDE_SAME"):
        ReidEvaluator.from_config(config(EXCLUDE_SAME="camid"), some, some)


@pytest.mark.parametrize("section", ["RERANK", "AQE", "ROC"])
def test_what_is_not_available_is_refused_by_its_key(section: str) -> None:
    some = samples([1])
    with pytest.raises(ValueError, match=rf"TEST\.{section}\.ENABLED is True, but .* is not available"):
        ReidEvaluator.from_config(config(**{section: True}), some, some)
