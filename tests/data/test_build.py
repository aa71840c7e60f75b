from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fastreid_lite import data
from fastreid_lite.config import get_cfg
from fastreid_lite.data import build_test_loader, build_train_loader
from fastreid_lite.data.fetching import make_loader


def write(root: Path, name: str, pids: range, images: int, offset: int = 0) -> None:
    """A folder of ``name/{train,query,gallery}/ID`` with random images of 16x8 pixels."""
    rng = np.random.default_rng(0)
    for part, identities in (("train", pids), ("query", range(90, 93)), ("gallery", range(90, 93))):
        for pid in identities:
            folder = root / name / part / str(pid)
            folder.mkdir(parents=True)
            for number in range(images):
                image = Image.fromarray(rng.integers(0, 256, (16, 8, 3), dtype=np.uint8))
                image.save(folder / f"{pid}_c{number % 2 + 1}_{number}.jpg")


@pytest.fixture
def cfg(tmp_path: Path) -> Any:
    write(tmp_path, "a", range(5, 11), 4)
    write(tmp_path, "b", range(5, 9), 4)
    cfg = get_cfg()
    cfg.DATASETS.ROOT = str(tmp_path)
    cfg.DATASETS.NAMES = ("ImageFolderReID:a",)
    cfg.DATASETS.TESTS = ("ImageFolderReID:a",)
    cfg.DATALOADER.NUM_WORKERS = 0
    cfg.DATALOADER.SAMPLER_TRAIN = "NaiveIdentitySampler"
    cfg.DATALOADER.NUM_INSTANCE = 2
    cfg.SOLVER.IMS_PER_BATCH = 8
    cfg.TEST.IMS_PER_BATCH = 5
    cfg.INPUT.SIZE_TRAIN = [12, 6]
    cfg.INPUT.SIZE_TEST = [10, 5]
    return cfg


def test_training_pids_become_classes_from_0(cfg: Any) -> None:
    loader = build_train_loader(cfg, seed=0)
    assert loader.num_classes == 6 and len(loader) == 3 and len(loader.labels) == 6
    batches = [*loader]
    assert len(batches) == 3 and batches[0]["images"].shape == (8, 3, 12, 6)
    assert {int(target) for batch in batches for target in batch["targets"]} == set(range(6))
    assert any("24 images of 6 identities" in note for note in loader.notes)


def test_sets_are_joined_without_making_one_person_of_two(cfg: Any) -> None:
    cfg.DATASETS.NAMES = ("ImageFolderReID:a", "ImageFolderReID:b")
    loader = build_train_loader(cfg, seed=0)
    assert loader.num_classes == 10
    assert [label.pid for label in loader.labels] == [label.pid for label in loader.labels[:6]] + [
        label.pid for label in loader.labels[6:]
    ]


def test_processes_share_each_batch(cfg: Any) -> None:
    whole = [batch["img_paths"] for batch in build_train_loader(cfg, seed=1)]
    shares = [
        [batch["img_paths"] for batch in build_train_loader(cfg, seed=1, rank=rank, world_size=2)] for rank in range(2)
    ]
    assert whole == [first + second for first, second in zip(*shares)]


def test_evaluation_has_the_queries_first_and_pids_as_they_were(cfg: Any) -> None:
    loader, query, gallery = build_test_loader(cfg, "ImageFolderReID:a")
    assert len(query) == len(gallery) == 12
    batches = [*loader]
    assert len(loader) == len(batches) == 5 and [len(batch["indices"]) for batch in batches] == [5, 5, 5, 5, 4]
    paths = [path for batch in batches for path in batch["img_paths"]]
    assert paths == [*query.paths, *gallery.paths]
    assert [int(pid) for batch in batches for pid in batch["targets"]] == [*query.pids, *gallery.pids]
    assert batches[0]["images"].shape == (5, 3, 10, 5)
    assert any("12 images of 3 identities" in note for note in loader.notes)


def test_identities_held_out_for_validation_are_not_trained_on(cfg: Any) -> None:
    cfg.DATASETS.VAL_FRACTION = 0.34
    train = build_train_loader(cfg, seed=0)
    loader, query, gallery = build_test_loader(cfg, "ImageFolderReID:a", validation=True)
    assert train.num_classes == 4 and len(train.samples) == 16
    assert query.paths == gallery.paths and len(query) == 8 and len(loader.samples) == 16
    assert not set(train.samples.paths) & set(query.paths)
    assert any("held out for validation" in note and "8 images of 2" in note for note in train.notes)


@pytest.mark.parametrize(("batch", "world_size", "least"), [(1, 1, 2), (2, 2, 4), (0, 1, 2), (-8, 1, 2), (3, 2, 4)])
def test_a_batch_of_one_image_for_a_process_is_refused(cfg: Any, batch: int, world_size: int, least: int) -> None:
    cfg.SOLVER.IMS_PER_BATCH = batch
    with pytest.raises(
        ValueError, match=rf"SOLVER.IMS_PER_BATCH is {batch} over {world_size} process.*make it at least {least}"
    ):
        build_train_loader(cfg, seed=0, world_size=world_size)


@pytest.mark.parametrize("batch", [0, -1])
def test_an_evaluation_batch_of_nothing_is_refused(cfg: Any, batch: int) -> None:
    cfg.TEST.IMS_PER_BATCH = batch
    with pytest.raises(ValueError, match=rf"batch_size is {batch} \(TEST.IMS_PER_BATCH\)"):
        build_test_loader(cfg, "ImageFolderReID:a")


def test_both_loaders_read_ahead_as_the_config_says(cfg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cfg.DATALOADER.NUM_WORKERS, cfg.DATALOADER.PREFETCH_FACTOR = 1, 3
    made: list[Any] = []

    def noting(*args: Any, **options: Any) -> Any:
        made.append(options["prefetch_factor"])
        return make_loader(*args, **options)

    monkeypatch.setattr("fastreid_lite.data.loader.make_loader", noting)
    train, test = build_train_loader(cfg, seed=0), build_test_loader(cfg, "ImageFolderReID:a")[0]
    next(iter(train)), next(iter(test))
    train.close()
    assert made == [3, 3]
    cfg.DATALOADER.PREFETCH_FACTOR = 0
    with pytest.raises(ValueError, match="DATALOADER.PREFETCH_FACTOR"):
        build_test_loader(cfg, "ImageFolderReID:a")


def test_columns_that_joining_leaves_out_are_said(cfg: Any, tmp_path: Path) -> None:
    image = next((tmp_path / "a" / "train").rglob("*.jpg"))
    rows = "".join(f"{image},{pid},{pid},train,{pid}\n" for pid in (1, 2))
    (tmp_path / "list.csv").write_text("path,pid,camid,split,clothes\n" + rows)
    cfg.DATASETS.NAMES = ("CsvReID:list.csv", "ImageFolderReID:b")
    cfg.DATALOADER.SAMPLER_TRAIN = "TrainingSampler"
    loader = build_train_loader(cfg, seed=0)
    for column in ("camid", "clothes"):
        assert f"training: the column {column!r} is left out, since ImageFolderReID:b has none" in loader.notes
    cfg.DATASETS.NAMES = ("ImageFolderReID:b",)
    assert not any("left out" in note for note in build_train_loader(cfg, seed=0).notes)


def test_who_is_held_out_depends_on_what_the_evaluation_takes_out(cfg: Any, tmp_path: Path) -> None:
    image = next((tmp_path / "a" / "train").rglob("*.jpg"))
    rows = "".join(f"{image},{pid},0,train\n" for pid in (1, 1, 2, 2, 3, 3))
    (tmp_path / "list.csv").write_text("path,pid,camid,split\n" + rows)
    cfg.DATASETS.VAL_FRACTION = 0.34
    with pytest.raises(ValueError, match="3 training identities, 0 of them with images to be found again"):
        build_test_loader(cfg, "CsvReID:list.csv", validation=True)
    cfg.TEST.EXCLUDE_SAME = ()
    assert len(build_test_loader(cfg, "CsvReID:list.csv", validation=True)[1]) == 2


def test_a_set_smaller_than_a_batch_is_named_with_its_folder_and_counts(cfg: Any, tmp_path: Path) -> None:
    cfg.SOLVER.IMS_PER_BATCH = 32
    with pytest.raises(ValueError, match=r"training part of 'ImageFolderReID:a' \(folder '.*a'\) has 24 images.*32"):
        build_train_loader(cfg, seed=0)


def test_sampler_settings_that_cannot_be_met_name_the_set(cfg: Any) -> None:
    cfg.SOLVER.IMS_PER_BATCH = 16
    with pytest.raises(ValueError, match=r"'ImageFolderReID:a'.*needs 8 different identities.*has only 6"):
        build_train_loader(cfg, seed=0)


def test_an_empty_query_is_named(cfg: Any, tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(tmp_path / "a" / "query")
    (tmp_path / "a" / "query").mkdir()
    with pytest.raises(ValueError, match=r"ImageFolderReID:a.*query"):
        build_test_loader(cfg, "ImageFolderReID:a")


@pytest.mark.slow
def test_a_root_with_odd_characters_works_under_the_c_locale(cfg: Any, tmp_path: Path) -> None:
    root = tmp_path / "数据 集#[1]"
    write(root, "行人", range(5, 11), 4)
    code = (
        "import sys\n"
        "from fastreid_lite.config import get_cfg\n"
        "from fastreid_lite.data import build_train_loader\n"
        "cfg = get_cfg()\n"
        "cfg.DATASETS.ROOT, name = sys.argv[1], sys.argv[2]\n"
        "cfg.DATASETS.NAMES = ('ImageFolderReID:' + name,)\n"
        "cfg.DATALOADER.NUM_WORKERS, cfg.SOLVER.IMS_PER_BATCH, cfg.INPUT.SIZE_TRAIN = 0, 8, [8, 4]\n"
        "print(sum(len(batch['images']) for batch in build_train_loader(cfg, seed=0)))\n"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(root), "行人"], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "24"


def test_every_name_that_the_package_lists_is_there() -> None:
    for name in data.__all__:
        assert getattr(data, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = data.Nothing


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, fastreid_lite.data, fastreid_lite.data.samplers; sys.exit('torch' in sys.modules)"
    root = str(Path(__file__).resolve().parents[2])
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60).returncode == 0
