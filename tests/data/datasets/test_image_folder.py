from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from fastreid_lite.data.datasets import ImageFolderReID

Touch = Callable[[Path, Iterable[str]], None]
SHARED = Path(__file__).resolve().parents[4] / "shared"


def test_parts_are_read_from_their_folders(tmp_path: Path, touch: Touch) -> None:
    touch(
        tmp_path / "toy",
        ["train/5/a.jpg", "train/900/b.PNG", "query/1/c.webp", "gallery/0001/d.tif", "gallery/0/e.pgm"],
    )
    data = ImageFolderReID(tmp_path, path="toy").load()
    assert data.train.pids.tolist() == [5, 900]
    assert data.query.pids.tolist() == [1]
    assert data.gallery.pids.tolist() == [0, 1]
    assert data.query.paths == (str(tmp_path / "toy/query/1/c.webp"),)
    assert data.train.camids is None
    assert data.name == "ImageFolderReID:toy"


def test_words_are_numbered_in_sorted_order_the_same_in_all_parts(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["train/zoe/1.jpg", "train/10/1.jpg", "query/ben/1.jpg", "gallery/ann/1.jpg", "gallery/ben/1.jpg"])
    data = ImageFolderReID("", path=str(tmp_path)).load()
    assert data.train.pids.tolist() == [0, 3]
    assert data.query.pids.tolist() == [2]
    assert data.gallery.pids.tolist() == [1, 2]


def test_a_set_may_have_train_alone_or_query_and_gallery_alone(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["a/train/1/1.jpg", "b/query/1/1.jpg", "b/gallery/1/1.jpg"])
    only_train = ImageFolderReID(tmp_path, path="a").load()
    assert (len(only_train.train), len(only_train.query), len(only_train.gallery)) == (1, 0, 0)
    only_test = ImageFolderReID(tmp_path, path="b").load()
    assert (len(only_test.train), len(only_test.query), len(only_test.gallery)) == (0, 1, 1)


def test_identities_alone_are_split_by_seed(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, [f"s{pid}/{image}.pgm" for pid in range(10) for image in range(3)])
    data = ImageFolderReID(tmp_path, path=".", test_fraction=0.3, split_seed=1).load()
    assert len(data.train) == 21 and len(data.query) == 9
    assert data.query is data.gallery
    assert not set(data.train.pids.tolist()) & set(data.query.pids.tolist())
    again = ImageFolderReID(tmp_path, path=".", test_fraction=0.3, split_seed=1).load()
    assert again.train.paths == data.train.paths and np.array_equal(again.query.pids, data.query.pids)
    draws = {ImageFolderReID(tmp_path, path=".", split_seed=seed).load().query.paths for seed in range(5)}
    assert len(draws) > 1
    assert data.notes == ("3 of 10 identities drawn for testing (seed 1), each image a query",)


def test_the_split_leaves_somebody_on_both_sides(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["1/a.jpg", "2/a.jpg"])
    for fraction in (0.01, 0.99):
        data = ImageFolderReID(tmp_path, path="", test_fraction=fraction).load()
        assert len(data.train) == len(data.query) == 1


@pytest.mark.parametrize("name", ["数据 集", "a # b", "x[1]"])
def test_any_path_is_fine(tmp_path: Path, touch: Touch, name: str) -> None:
    touch(tmp_path / name, ["行人/a #[1].jpg", "b/数.jpg"])
    data = ImageFolderReID(tmp_path, path=name).load()
    assert len(data.train) + len(data.query) == 2


def test_hidden_and_foreign_files_are_passed_over(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["1/a.jpg", "1/Thumbs.db", "2/a.jpg", "2/._a.jpg", ".cache/a.jpg", "README.md", "3/notes.txt"])
    data = ImageFolderReID(tmp_path, path="").load()
    assert len(data.train) + len(data.query) == 2


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 2])
def test_a_fraction_that_splits_nothing_is_refused(tmp_path: Path, fraction: float) -> None:
    with pytest.raises(ValueError, match=r"test_fraction \(DATASETS.TEST_FRACTION\) is .*between 0 and 1"):
        ImageFolderReID(tmp_path, path="toy", test_fraction=fraction)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    dataset = ImageFolderReID(tmp_path, path="toy")
    with pytest.raises(ValueError, match=r"'ImageFolderReID:toy': the folder '.*toy' does not exist"):
        dataset.load()
    assert "does not exist" in str(dataset.missing())


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'ImageFolderReID:.': the part 'identities' in '.*' has 0 images"):
        ImageFolderReID(tmp_path, path=".").load()


def test_one_identity_cannot_be_split(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["1/a.jpg", "1/b.jpg"])
    with pytest.raises(ValueError, match="holds images of 1 identities, needs at least 2"):
        ImageFolderReID(tmp_path, path=".").load()


def test_an_empty_part_is_named(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["train/1/a.jpg", "gallery/1/a.jpg"])
    (tmp_path / "query" / "1").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"the part 'query' in '.*query' has 0 images"):
        ImageFolderReID(tmp_path, path=".").load()


def test_query_without_gallery_is_refused(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["train/1/a.jpg", "query/1/a.jpg"])
    with pytest.raises(ValueError, match="holds only 'query', expected 'train', 'query' and 'gallery'"):
        ImageFolderReID(tmp_path, path=".").load()


def test_identities_beside_parts_are_refused(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["train/1/a.jpg", "0002/a.jpg"])
    with pytest.raises(ValueError, match=r"holds the folder '0002' beside \['train'\]"):
        ImageFolderReID(tmp_path, path=".").load()


def test_images_outside_identities_are_refused(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["train/1/a.jpg", "train/0002_c1.jpg"])
    with pytest.raises(
        ValueError, match="1 images lie right in '.*train', the first '0002_c1.jpg', expected one folder"
    ):
        ImageFolderReID(tmp_path, path=".").load()


def test_two_names_of_one_number_are_refused(tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, ["1/a.jpg", "001/a.jpg", "2/a.jpg"])
    with pytest.raises(ValueError, match="'001' and '1' in one part are the same number 1"):
        ImageFolderReID(tmp_path, path=".").load()


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="needs shared/data beside the repository")
def test_the_faces_are_split_in_halves() -> None:
    data = ImageFolderReID(SHARED / "data", path="orl_faces").load()
    assert (len(data.train), len(data.query), len(data.gallery)) == (200, 200, 200)
