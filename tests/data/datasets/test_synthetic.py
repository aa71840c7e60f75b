from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fastreid_lite.data.datasets import MarketStyleData, SyntheticReID
from fastreid_lite.data.datasets.market1501 import read_market_layout
from fastreid_lite.data.samples import ReIDData, Samples

REPOSITORY = Path(__file__).resolve().parents[3]
SMALL: dict[str, Any] = {
    "train_ids": 3,
    "test_ids": 2,
    "cameras": 2,
    "images_per_camera": 2,
    "distractors": 3,
    "junk": 2,
}
SCRIPT = """
import json, sys
from fastreid_lite.data.datasets import SyntheticReID
data = SyntheticReID(sys.argv[1], **json.loads(sys.argv[2])).load()
print(len(data.train), len(data.query), len(data.gallery))
"""


def start(root: Path, settings: dict[str, Any], **environment: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    command = [sys.executable, "-c", SCRIPT, str(root), json.dumps(settings)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)


def digest(folder: str) -> dict[str, str]:
    files = sorted(path for path in Path(folder).rglob("*.jpg"))
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_set_has_the_layout_and_names_of_market1501(tmp_path: Path) -> None:
    dataset = SyntheticReID(tmp_path, **SMALL)
    data = dataset.load()
    again = read_market_layout("Market1501", Path(dataset.folder), cameras=6)
    assert again.train.paths == data.train.paths and again.gallery.pids.tolist() == data.gallery.pids.tolist()
    assert "query/0004_c1s1_000151_00.jpg" in digest(dataset.folder)
    assert (len(data.train), len(data.query), len(data.gallery)) == (12, 4, 4 + 3)
    assert data.notes == ("2 junk boxes (pid -1) dropped from gallery",)
    assert isinstance(data, MarketStyleData)
    assert (data.gallery.pids == 0).sum() == 3
    with Image.open(data.train.paths[0]) as image:
        assert image.size == (64, 128) and image.mode == "RGB" and image.format == "JPEG"


def test_train_and_test_people_are_disjoint_and_seen_by_every_camera(tmp_path: Path) -> None:
    data = SyntheticReID(tmp_path, **SMALL).load()
    train, test = set(data.train.pids.tolist()), set(data.query.pids.tolist())
    assert (train, test) == ({1, 2, 3}, {4, 5})
    assert set(data.gallery.pids.tolist()) == {0, 4, 5}
    assert data.train.camids is not None
    for pid in train:
        assert set(data.train.camids[data.train.pids == pid].tolist()) == {0, 1}


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed_and_another_seed_others(tmp_path: Path) -> None:
    ours = SyntheticReID(tmp_path / "a", **SMALL)
    ours.load()
    process = start(tmp_path / "b", SMALL, PYTHONHASHSEED="12345")
    assert process.communicate(timeout=60)[0].split() == ["12", "4", "7"]
    theirs = SyntheticReID(tmp_path / "b", **SMALL)
    assert digest(theirs.folder) == digest(ours.folder)
    other = SyntheticReID(tmp_path / "a", seed=1, **SMALL)
    other.load()
    assert other.folder != ours.folder
    assert not set(digest(other.folder).values()) & set(digest(ours.folder).values())


def test_more_identities_leave_the_people_as_they_are(tmp_path: Path) -> None:
    few, more = SyntheticReID(tmp_path, **SMALL), SyntheticReID(tmp_path, **{**SMALL, "train_ids": 4})
    few.load(), more.load()
    train = {name: value for name, value in digest(few.folder).items() if name.startswith("bounding_box_train")}
    assert train.items() <= digest(more.folder).items()


def test_it_is_written_once_and_reused(tmp_path: Path) -> None:
    dataset = SyntheticReID(tmp_path, **SMALL)
    assert dataset.missing() == "25 images, written when first used"
    first = dataset.load()
    times = [os.stat(path).st_mtime_ns for path in first.train.paths]
    assert dataset.missing() is None
    again = SyntheticReID(tmp_path, **SMALL).load()
    assert [os.stat(path).st_mtime_ns for path in again.train.paths] == times


def test_the_folder_may_be_named_absolute_or_under_the_root(tmp_path: Path) -> None:
    assert SyntheticReID(tmp_path, folder="x/y").folder == str(tmp_path / "x" / "y")
    assert SyntheticReID(tmp_path, folder=str(tmp_path / "数 据[1]"), **SMALL).load().folder == str(
        tmp_path / "数 据[1]"
    )


def test_two_processes_at_once_end_with_one_whole_set(tmp_path: Path) -> None:
    processes = [start(tmp_path, SMALL) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].split() for process in processes] == [["12", "4", "7"]] * 2
    (folder,) = [path for path in (tmp_path / "synthetic_reid").iterdir() if path.is_dir()]
    assert str(folder) == SyntheticReID(tmp_path, **SMALL).folder
    assert len(digest(str(folder))) == 25


def test_what_a_killed_process_left_is_cleared_away_and_done_again(tmp_path: Path) -> None:
    settings = {**SMALL, "train_ids": 500}
    process = start(tmp_path, settings)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.jpg")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    killed = SyntheticReID(tmp_path, **settings)
    assert not Path(killed.folder).exists() and list(tmp_path.rglob("*.jpg"))
    # The same folder with few images, so that the second run is short.
    folder = "synthetic_reid/" + Path(killed.folder).name
    assert len(SyntheticReID(tmp_path, folder=folder, **SMALL).load().train) == 12
    assert not [path for path in (tmp_path / "synthetic_reid").iterdir() if "writing" in path.name]


def test_a_set_with_a_file_lost_or_cut_is_written_anew(tmp_path: Path) -> None:
    dataset = SyntheticReID(tmp_path, **SMALL)
    whole = dataset.load()
    before = digest(dataset.folder)
    Path(whole.train.paths[0]).unlink()
    assert len(dataset.load().train) == 12
    Path(whole.query.paths[0]).write_bytes(b"")
    dataset.load()
    assert digest(dataset.folder) == before


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("train_ids", 1, ValueError, r"train_ids \(DATASETS.SYNTHETIC.TRAIN_IDS\) is 1, expected at least 2"),
        ("test_ids", 0, ValueError, "test_ids .* is 0, expected at least 1"),
        ("cameras", 1, ValueError, "cameras .* is 1, expected at least 2"),
        ("images_per_camera", 1, ValueError, "images_per_camera .* is 1, expected at least 2"),
        ("distractors", -1, ValueError, "distractors .* is -1, expected at least 0"),
        ("junk", -1, ValueError, "junk .* is -1, expected at least 0"),
        ("seed", -1, ValueError, "seed .* is -1, expected at least 0"),
        ("size", [16, 8], ValueError, r"size \(DATASETS.SYNTHETIC.SIZE\) is 16, expected at least 32"),
        ("size", [128], ValueError, r"size .* is \[128\], expected height and width"),
        ("cameras", 2.5, TypeError, "cameras .* is 2.5, expected an integer of at least 2"),
        ("junk", True, TypeError, "junk .* is True, expected an integer"),
    ],
)
def test_a_setting_out_of_range_is_refused(
    tmp_path: Path, name: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SyntheticReID(tmp_path, **{name: value})


def stripes_histogram(samples: Samples, stripes: int) -> np.ndarray:
    """(N, D) RGB histograms, 8 x 8 x 8 bins in each of ``stripes`` horizontal stripes, of unit length."""
    rows = []
    for path in samples.paths:
        with Image.open(path) as image:
            bins = (np.asarray(image).astype(np.int64) // 32) @ np.array([64, 8, 1])
        counts = [np.bincount(part.ravel(), minlength=512) for part in np.array_split(bins, stripes)]
        rows.append(np.sqrt(np.concatenate(counts)))
    features = np.stack(rows)
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def mean_average_precision(data: ReIDData, query: np.ndarray, gallery: np.ndarray) -> float:
    """By definition, in percent; gallery images of the query's person by the query's camera taken out."""
    assert data.query.camids is not None and data.gallery.camids is not None
    precisions = []
    for row in range(len(query)):
        same = data.gallery.pids == data.query.pids[row]
        keep = ~(same & (data.gallery.camids == data.query.camids[row]))
        order = np.argsort(-(gallery[keep] @ query[row]), kind="stable")
        ranks = np.flatnonzero(same[keep][order]) + 1
        precisions.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    return 100.0 * float(np.mean(precisions))


@pytest.mark.parametrize("stripes", [1, 8])
def test_colour_histograms_do_not_solve_the_task(tmp_path_factory: pytest.TempPathFactory, stripes: int) -> None:
    root = tmp_path_factory.getbasetemp() / "histograms"
    data = SyntheticReID(root, train_ids=2, test_ids=24, images_per_camera=2, distractors=8, junk=0).load()
    score = mean_average_precision(
        data, stripes_histogram(data.query, stripes), stripes_histogram(data.gallery, stripes)
    )
    assert score < 45.0
