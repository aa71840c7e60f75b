from __future__ import annotations

import logging

import numpy as np
import pytest

from fastreid_lite.data.samples import Samples
from fastreid_lite.evaluation.protocol import Protocol, own_images, same_identity, split_pairs
from tests.evaluation.naive import samples


def as_set(pairs: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(pairs[0].tolist(), pairs[1].tolist()))


def test_same_identity_finds_all_pairs_in_order() -> None:
    generator = np.random.default_rng(0)
    query, gallery = samples(generator.integers(0, 5, 12)), samples(generator.integers(0, 6, 30))
    pairs = same_identity(query, gallery)
    expected = [(q, g) for q in range(12) for g in range(30) if query.pids[q] == gallery.pids[g]]
    assert list(zip(pairs.rows.tolist(), pairs.columns.tolist())) == expected


def test_the_same_camera_of_the_same_identity_goes_out() -> None:
    matches, out = split_pairs(samples([1], [0]), samples([1, 1, 2], [0, 1, 0], name="g"), Protocol())
    assert as_set(matches) == {(0, 1)}
    assert as_set(out) == {(0, 0)}


def test_all_columns_together_take_an_item_out() -> None:
    query, gallery = samples([1], [0]), samples([1, 1, 1], [0, 0, 1], name="g")
    query.columns["clothes"] = np.array([5])  # type: ignore[index]
    gallery.columns["clothes"] = np.array([5, 6, 5])  # type: ignore[index]
    matches, _ = split_pairs(query, gallery, Protocol(exclude_same=("camid", "clothes")))
    assert as_set(matches) == {(0, 1), (0, 2)}


@pytest.mark.parametrize("exclude_same", [(), ("camid",)])
def test_without_cameras_only_the_own_image_goes_out(exclude_same: tuple[str, ...]) -> None:
    query = samples([1, 2], paths=["a", "b"])
    gallery = samples([1, 1, 3], paths=["a", "c", "b"])
    matches, out = split_pairs(query, gallery, Protocol(exclude_same=exclude_same))
    assert as_set(matches) == {(0, 1)}
    # The second query's own image goes out although its label differs.
    assert as_set(out) == {(0, 0), (1, 2)}


def test_two_boxes_of_one_file_are_two_images() -> None:
    query = Samples(("a",), {"pid": np.array([1])}, np.array([[0, 0, 4, 4]]))
    gallery = Samples(("a", "a"), {"pid": np.array([1, 1])}, np.array([[0, 0, 4, 4], [5, 0, 4, 4]]))
    assert as_set(own_images(query, gallery)) == {(0, 0)}


def test_a_missing_column_is_said_and_only_a_missing_camera_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    query, gallery = samples([1]), samples([1], name="g")
    with caplog.at_level(logging.INFO):
        split_pairs(query, gallery, Protocol())
        split_pairs(query, gallery, Protocol(exclude_same=("clothing",)))
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "no column 'clothing'" in caplog.text and "TEST.EXCLUDE_SAME" in caplog.text


def test_junk_and_masked_images_leave() -> None:
    images = samples([-1, 0, 1, 2], [0, 1, 2, 1])
    protocol = Protocol(gallery_where={"camid": (1, 2)}, query_where={"camid": (2,)})
    assert protocol.gallery_mask(images).tolist() == [False, True, True, True]
    assert protocol.query_mask(images).tolist() == [False, False, True, False]
    assert Protocol(junk_pids=()).gallery_mask(images).all()


def test_a_trial_draws_one_of_each_group_and_is_a_function_of_seed_and_number() -> None:
    images = samples(np.repeat(np.arange(10), 7), np.tile(np.arange(7) % 2, 10))
    protocol = Protocol(trials=3, seed=4)
    draws = [protocol.gallery_mask(images, trial) for trial in range(3)]
    for drawn in draws:
        assert sorted(images.pids[drawn].tolist()) == list(range(10))
    assert not np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[2], Protocol(trials=9, seed=4).gallery_mask(images, 2))
    assert not np.array_equal(draws[0], Protocol(trials=3, seed=5).gallery_mask(images, 0))
    assert Protocol(trials=1, draw_by=("pid", "camid")).gallery_mask(images, 0).sum() == 20


def test_every_image_of_a_group_is_drawn_about_as_often() -> None:
    images = samples([0] * 4)
    protocol = Protocol(trials=2000)
    counts = sum(protocol.gallery_mask(images, trial).astype(int) for trial in range(2000))
    assert (np.abs(counts - 500) < 100).all()


def test_bad_protocols_are_refused() -> None:
    with pytest.raises(TypeError, match=r"exclude_same \(TEST.EXCLUDE_SAME\) is 'camid', expected a tuple"):
        Protocol(exclude_same="camid")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="draw_by is 'pid', expected a tuple"):
        Protocol(draw_by="pid")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="trials is -1, expected 0"):
        Protocol(trials=-1)
    with pytest.raises(ValueError, match="draw_by is empty"):
        Protocol(draw_by=())
    with pytest.raises(KeyError, match="column 'clothes', which the gallery lacks.*'pid'"):
        Protocol(gallery_where={"clothes": (1,)}).gallery_mask(samples([1]))
