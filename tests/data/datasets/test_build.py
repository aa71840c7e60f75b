from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.data.datasets import (
    DATASET_REGISTRY,
    build_dataset,
    combine_train,
    dataset_folder,
    datasets_root,
    needs_path,
    open_dataset,
    require_part,
)
from fastreid_lite.data.samples import ReIDData, Samples

Touch = Callable[[Path, Iterable[str]], None]
SMALL = ["DATASETS.SYNTHETIC.TRAIN_IDS", "2", "DATASETS.SYNTHETIC.TEST_IDS", "1", "DATASETS.SYNTHETIC.CAMERAS", "2"]


def test_the_root_is_the_configured_one_then_the_environments_then_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTREID_LITE_DATASETS", "/from/environment")
    assert datasets_root("/configured") == Path("/configured")
    assert datasets_root("") == Path("/from/environment")
    monkeypatch.delenv("FASTREID_LITE_DATASETS")
    assert datasets_root("") == Path("datasets")
    assert datasets_root("~/data") == Path.home() / "data"


def test_a_dataset_is_built_by_name(cfg: Any, market: Callable[..., Path]) -> None:
    market()
    data = build_dataset(cfg, "Market1501")
    assert data.name == "Market1501" and len(data.train) == 3
    assert dataset_folder(cfg, "Market1501") == data.folder


@pytest.mark.parametrize("folder", ["toy", "数据 集#[1]", "a:b"])
def test_a_path_behind_the_colon_is_relative_to_the_root_or_absolute(
    cfg: Any, tmp_path: Path, touch: Touch, folder: str
) -> None:
    touch(tmp_path / folder, ["1/a.jpg", "2/a.jpg"])
    for path in (folder, f"./{folder}/", str(tmp_path / folder)):
        data = build_dataset(cfg, f"ImageFolderReID:{path}")
        assert data.name == f"ImageFolderReID:{path}" and data.folder == str(tmp_path / folder)
        assert len(data.train) == len(data.query) == 1


def test_two_sets_of_one_folder_name_are_kept_apart(cfg: Any, tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path, [f"{place}/set/train/{pid}/a.jpg" for place in ("here", "there") for pid in (1, 2)])
    sets = [build_dataset(cfg, f"ImageFolderReID:{place}/set") for place in ("here", "there")]
    assert len(combine_train(sets, False)[1]) == 4


def test_datasets_read_their_keys(cfg: Any, tmp_path: Path, touch: Touch) -> None:
    touch(tmp_path / "toy", [f"{pid}/a.jpg" for pid in range(10)])
    cfg.DATASETS.TEST_FRACTION = 0.2
    assert len(build_dataset(cfg, "ImageFolderReID:toy").query) == 2
    cfg.merge_from_list(SMALL)
    data = build_dataset(cfg, "SyntheticReID")
    assert len(data.train) == 2 * 2 * cfg.DATASETS.SYNTHETIC.IMAGES_PER_CAMERA
    cfg.merge_from_list(["DATASETS.SYNTHETIC.FOLDER", "elsewhere", "DATASETS.SYNTHETIC.SEED", "7"])
    assert dataset_folder(cfg, "SyntheticReID") == str(tmp_path / "elsewhere")


@pytest.fixture
def own_dataset() -> Iterator[type]:
    class OwnReID:
        def __init__(self, root: Path, *, path: str = "default") -> None:
            self.folder = str(root / path)

        def load(self) -> ReIDData:
            return ReIDData("anything", self.folder, Samples.empty(), Samples.empty(), Samples.empty())

    DATASET_REGISTRY.register(OwnReID)
    yield OwnReID
    del DATASET_REGISTRY._entries["OwnReID"]


def test_a_class_from_outside_needs_a_constructor_a_folder_and_load_alone(
    cfg: Any, tmp_path: Path, own_dataset: type
) -> None:
    assert build_dataset(cfg, "OwnReID").folder == str(tmp_path / "default")
    assert build_dataset(cfg, "OwnReID:x").name == "OwnReID:x"
    assert not needs_path("OwnReID") and needs_path("CsvReID")


def test_an_unknown_name_suggests_the_nearest(cfg: Any) -> None:
    with pytest.raises(
        KeyError, match=r"unknown dataset 'Market1502' \(DATASETS.NAMES or DATASETS.TESTS\); did you mean 'Market1501'"
    ):
        build_dataset(cfg, "Market1502")


@pytest.mark.parametrize("name", ["CsvReID", "ImageFolderReID:"])
def test_a_missing_path_is_refused(cfg: Any, name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"dataset '{name}' \(DATASETS.NAMES or DATASETS.TESTS\) needs a path: write '.*:PATH'"
    ):
        build_dataset(cfg, name)


def test_a_path_for_a_set_that_takes_none_is_refused(cfg: Any) -> None:
    with pytest.raises(ValueError, match="'Market1501:x' .* has a path, but Market1501 takes none"):
        build_dataset(cfg, "Market1501:x")


def test_a_part_that_must_not_be_empty_is_named(cfg: Any, tmp_path: Path, own_dataset: type) -> None:
    with pytest.raises(ValueError, match="dataset 'OwnReID': the part 'query' in '.*default' has 0 images"):
        require_part(build_dataset(cfg, "OwnReID"), "query")


def test_listing_order_does_not_depend_on_the_file_system(
    cfg: Any, tmp_path: Path, touch: Touch, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    touch(tmp_path / "toy", [f"{pid}/{image}.jpg" for pid in (10, 9, 1) for image in "cab"])
    plain = build_dataset(cfg, "ImageFolderReID:toy")
    scandir = os.scandir

    class Backwards:
        def __init__(self, folder: str) -> None:
            with scandir(folder) as entries:
                self.entries = list(entries)[::-1]

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Backwards)
    assert build_dataset(cfg, "ImageFolderReID:toy").train.paths == plain.train.paths


@pytest.mark.parametrize("name", ["Market1501", "ImageFolderReID:toy"])
def test_a_folder_that_may_not_be_read_is_a_sentence(
    cfg: Any, tmp_path: Path, touch: Touch, market: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import os

    market()
    touch(tmp_path / "toy", ["1/a.jpg", "2/a.jpg"])

    def refuse(path: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ValueError, match=rf"^dataset '{name}': '{tmp_path}/.*' cannot be read \(Permission denied\)"):
        build_dataset(cfg, name)


def test_a_folder_below_one_that_may_not_be_entered_is_a_sentence(
    cfg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(ValueError, match=r"'ImageFolderReID:toy': the folder '.*toy' cannot be read \(Permission"):
        build_dataset(cfg, "ImageFolderReID:toy")
    assert "cannot be read" in str(open_dataset(cfg, "Market1501").missing())


def test_torch_is_not_imported() -> None:
    script = "import sys; import fastreid_lite.data.datasets; sys.exit('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", script], cwd=root).returncode == 0
