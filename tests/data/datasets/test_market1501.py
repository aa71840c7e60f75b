from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastreid_lite.data.datasets import Market1501, MarketStyleData
from fastreid_lite.data.samples import Samples

SHARED = Path(__file__).resolve().parents[4] / "shared"
MakeMarket = Callable[..., Path]


def names(samples: Samples) -> list[str]:
    return [os.path.basename(path) for path in samples.paths]


def test_names_are_read_as_pids_and_cameras_from_zero(market: MakeMarket) -> None:
    data = Market1501(market()).load()
    assert names(data.train) == ["0002_c1s1_000451_03.jpg", "0002_c2s1_000451_03.jpg", "0007_c6s3_000001_01.jpg.jpg"]
    assert data.train.pids.tolist() == [2, 2, 7]
    assert data.train.columns["camid"].tolist() == [0, 1, 5]
    assert data.query.pids.tolist() == [1]
    assert data.name == "Market1501" and data.folder.endswith("Market-1501-v15.09.15")


def test_junk_is_dropped_with_a_note_and_distractors_stay_in_the_gallery(market: MakeMarket) -> None:
    data = Market1501(market(bounding_box_train=("-1_c1s1_1_0.jpg", "0000_c1s1_1_0.jpg", "0005_c1s1_1_0.jpg"))).load()
    assert data.gallery.pids.tolist() == [0, 1]
    assert data.train.pids.tolist() == [5]
    assert data.notes == (
        "1 junk boxes (pid -1) dropped from train",
        "1 distractors (pid 0) dropped from train",
        "1 junk boxes (pid -1) dropped from gallery",
    )
    assert isinstance(data, MarketStyleData) and data.distractor_pids == {0}


def test_the_pattern_is_applied_to_the_name_and_never_to_the_path(market: MakeMarket, tmp_path: Path) -> None:
    data = Market1501(market(tmp_path / "run2_c7" / "0009_c5s1_")).load()
    assert data.train.pids.tolist() == [2, 2, 7]


@pytest.mark.parametrize("root", ["数据 集", "a # b", "x[1]", "*?", "naïve folder"])
def test_any_folder_name_is_fine(market: MakeMarket, tmp_path: Path, root: str) -> None:
    market(tmp_path / root, query=("0001_c1s1_行人.jpg",))
    data = Market1501(tmp_path / root).load()
    assert (len(data.train), len(data.query), len(data.gallery)) == (3, 1, 2)
    assert names(data.query) == ["0001_c1s1_行人.jpg"]


def test_non_ascii_folders_are_read_under_the_c_locale(market: MakeMarket, tmp_path: Path) -> None:
    root = market(tmp_path / "数据 集#[1]", query=("0001_c1s1_行人.jpg",))
    script = (
        "import sys; from fastreid_lite.data.datasets import Market1501; d = Market1501(sys.argv[1]).load();"
        "print(len(d.train), len(d.query), len(d.gallery))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    environment.pop("PYTHONUTF8", None)
    done = subprocess.run([sys.executable, "-c", script, str(root)], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "1", "2"], done.stderr


def test_files_that_are_no_images_are_passed_over(market: MakeMarket, tmp_path: Path) -> None:
    root = market()
    query = root / "Market-1501-v15.09.15" / "query"
    for name in ("Thumbs.db", "list.txt", "._0001_c1s1_001051_00.jpg"):
        (query / name).touch()
    assert names(Market1501(root).load().query) == ["0001_c1s1_001051_00.jpg"]


def test_extensions_count_in_either_case(market: MakeMarket) -> None:
    data = Market1501(market(query=("0001_c1s1_0_0.JPG", "0003_c1s1_0_0.Png"))).load()
    assert data.query.pids.tolist() == [1, 3]


@pytest.mark.parametrize(
    "name",
    ["行人_0001_c1s1.jpg", "0001_s1.jpg", "0001_c7s1_0.jpg", "0001_c0s1_0.jpg", "-2_c1s1_0.jpg", "a1_c1s1_0.jpg"],
)
def test_a_name_off_the_pattern_is_refused_with_the_count_and_the_first(market: MakeMarket, name: str) -> None:
    root = market(query=("0001_c1s1_1_0.jpg", name, "zzz.jpg"))
    with pytest.raises(
        ValueError, match=r"'Market1501'.*'query' in '.*query' 2 of 3 image names.*camera 1 to 6"
    ) as caught:
        Market1501(root).load()
    assert repr(sorted([name, "zzz.jpg"])[0]) in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'Market1501': the folder '.*Market-1501-v15.09.15' does not exist; put it"):
        Market1501(tmp_path).load()


def test_missing_parts_are_named(market: MakeMarket) -> None:
    root = market()
    for file in sorted((root / "Market-1501-v15.09.15" / "query").iterdir()):
        file.unlink()
    (root / "Market-1501-v15.09.15" / "query").rmdir()
    with pytest.raises(ValueError, match="has no subfolder query"):
        Market1501(root).load()
    assert re.search("has no subfolder query$", str(Market1501(root).missing()))


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "Market-1501-v15.09.15").touch()
    with pytest.raises(ValueError, match="is no folder"):
        Market1501(tmp_path).load()


@pytest.mark.parametrize("part", ["train", "query", "gallery"])
def test_an_empty_part_is_named_with_folder_and_count(market: MakeMarket, part: str) -> None:
    folder = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}[part]
    with pytest.raises(ValueError, match=rf"'Market1501': the part '{part}' in '.*{folder}' has 0 images; it needs"):
        Market1501(market(**{folder: ()})).load()


def test_a_part_of_junk_alone_is_empty(market: MakeMarket) -> None:
    root = market(bounding_box_test=("-1_c1s1_1_0.jpg",))
    with pytest.raises(ValueError, match="'gallery' in '.*' has 0 images besides 1 junk or distractors"):
        Market1501(root).load()


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="needs shared/data beside the repository")
def test_the_small_cut_of_the_real_set_has_its_counts() -> None:
    data = Market1501(SHARED / "data").load()
    assert (len(data.train), len(data.query), len(data.gallery)) == (2403, 155, 273)
    assert len(set(data.train.pids.tolist())) == 150
    assert sorted(set(data.train.columns["camid"].tolist())) == list(range(6))
