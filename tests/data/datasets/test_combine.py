from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fastreid_lite.data.datasets import Label, MarketStyleData, combine_train
from fastreid_lite.data.samples import ReIDData, Samples


def samples(prefix: str, pids: Sequence[int], camids: Sequence[int] | None = None, **more: Sequence[int]) -> Samples:
    columns = {"pid": np.array(pids, dtype=np.int64)}
    if camids is not None:
        columns["camid"] = np.array(camids, dtype=np.int64)
    columns.update({name: np.array(values, dtype=np.int64) for name, values in more.items()})
    return Samples(tuple(f"{prefix}/{row}.jpg" for row in range(len(pids))), columns)


def dataset(name: str, train: Samples, query: Samples | None = None, gallery: Samples | None = None) -> ReIDData:
    nothing = Samples.empty(tuple(train.columns))
    return ReIDData(name, "data/set", train, query or nothing, gallery or nothing)


def test_pids_become_classes_in_sorted_order() -> None:
    joined, labels = combine_train([dataset("A", samples("a", [900, 5, 900], [0, 1, 2]))], False)
    assert joined.pids.tolist() == [1, 0, 1]
    assert labels == (Label("A", "train", 5), Label("A", "train", 900))
    assert joined.camids is not None and joined.camids.tolist() == [0, 1, 2]


def test_equal_pids_and_cameras_of_two_sets_are_different() -> None:
    sets = [dataset(name, samples(name, [1, 2, 2], [0, 1, 3])) for name in ("A", "B")]
    joined, labels = combine_train(sets, False)
    assert joined.pids.tolist() == [0, 1, 1, 2, 3, 3]
    assert labels == (Label("A", "train", 1), Label("A", "train", 2), Label("B", "train", 1), Label("B", "train", 2))
    assert joined.camids is not None and joined.camids.tolist() == [0, 1, 3, 4, 5, 7]
    assert joined.paths[3] == "B/0.jpg"


def test_equal_pids_of_train_and_test_are_different_and_cameras_the_same() -> None:
    data = dataset("A", samples("t", [1, 2], [0, 1]), samples("q", [1], [0]), samples("g", [1, 2], [1, 0]))
    joined, labels = combine_train([data], True)
    assert joined.pids.tolist() == [0, 1, 2, 2, 3]
    assert labels[2:] == (Label("A", "test", 1), Label("A", "test", 2))
    assert joined.camids is not None and joined.camids.tolist() == [0, 1, 0, 1, 0]


def test_without_combine_all_the_test_part_is_not_learnt() -> None:
    data = dataset("A", samples("t", [1]), samples("q", [7]), samples("g", [7]))
    joined, labels = combine_train([data], False)
    assert len(joined) == len(labels) == 1


def test_distractors_and_junk_never_become_a_class() -> None:
    market = MarketStyleData(
        "M", "data", samples("t", [3], [0]), samples("q", [1], [0]), samples("g", [0, 1, -1, 0], [1, 1, 1, 2])
    )
    joined, labels = combine_train([market], True)
    assert [label.pid for label in labels] == [3, 1]
    assert joined.pids.tolist() == [0, 1, 1]


def test_elsewhere_zero_is_an_identity_like_any_other() -> None:
    data = dataset("A", samples("t", [0]), samples("q", [0]), samples("g", [0]))
    assert len(combine_train([data], True)[1]) == 2


def test_an_image_that_is_both_query_and_gallery_is_learnt_once() -> None:
    test = samples("x", [4, 5])
    joined, labels = combine_train([dataset("A", samples("t", [1]), test, test)], True)
    assert joined.paths == ("t/0.jpg", "x/0.jpg", "x/1.jpg")
    assert len(labels) == 3


def test_a_set_without_a_test_part_adds_its_train_part() -> None:
    joined, labels = combine_train([dataset("A", samples("t", [1], [0])), dataset("B", samples("u", [1], [0]))], True)
    assert len(joined) == len(labels) == 2
    assert joined.camids is not None and joined.camids.tolist() == [0, 1]


def test_columns_that_not_all_sets_have_are_left_out() -> None:
    sets = [dataset("A", samples("a", [1], [0], clothes=[4])), dataset("B", samples("b", [1], clothes=[4]))]
    joined, _ = combine_train(sets, False)
    assert sorted(joined.columns) == ["clothes", "pid"]
    assert joined.columns["clothes"].tolist() == [4, 4]


def boxed(name: str) -> ReIDData:
    train = Samples((f"{name}/0.jpg",) * 2, {"pid": np.array([1, 2])}, np.array([[0, 0, 5, 5], [5, 0, 5, 5]]))
    return dataset(name, train)


def test_boxes_travel_along() -> None:
    joined, _ = combine_train([boxed("A"), boxed("B")], False)
    assert joined.boxes is not None and joined.boxes.shape == (4, 4)


def test_no_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no dataset to train on \(DATASETS.NAMES is empty\)"):
        combine_train([], False)


def test_the_same_set_twice_is_refused() -> None:
    data = dataset("A", samples("a", [1]))
    with pytest.raises(ValueError, match="dataset 'A' stands more than once in DATASETS.NAMES"):
        combine_train([data, data], False)


def test_one_image_in_two_sets_is_refused() -> None:
    sets = [dataset(name, samples("same", [1])) for name in ("A", "B")]
    with pytest.raises(ValueError, match="the image 'same/0.jpg' is in the training parts of both 'A' and 'B'"):
        combine_train(sets, False)


def test_a_set_without_training_images_is_refused() -> None:
    with pytest.raises(ValueError, match="dataset 'B': the part 'train' in 'data/set' has 0 images"):
        combine_train([dataset("A", samples("a", [1])), dataset("B", samples("b", []))], False)


def test_boxes_in_some_sets_alone_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\['A'\] have boxes and the others have not"):
        combine_train([boxed("A"), dataset("B", samples("b", [1]))], False)
