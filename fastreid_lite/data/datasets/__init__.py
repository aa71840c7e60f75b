"""Datasets by name: what is on disk, read into samples. Nothing here needs torch."""

from __future__ import annotations

from fastreid_lite.data.datasets.build import build_dataset, dataset_folder, datasets_root, needs_path, open_dataset
from fastreid_lite.data.datasets.combine import Label, combine_train
from fastreid_lite.data.datasets.csv_table import CsvReID
from fastreid_lite.data.datasets.image_folder import ImageFolderReID
from fastreid_lite.data.datasets.market1501 import Market1501
from fastreid_lite.data.datasets.parts import MarketStyleData, require_part
from fastreid_lite.data.datasets.registry import DATASET_REGISTRY
from fastreid_lite.data.datasets.synthetic import SyntheticReID
from fastreid_lite.data.datasets.validation import split_validation

__all__ = [
    "DATASET_REGISTRY",
    "CsvReID",
    "ImageFolderReID",
    "Label",
    "Market1501",
    "MarketStyleData",
    "SyntheticReID",
    "build_dataset",
    "combine_train",
    "dataset_folder",
    "datasets_root",
    "needs_path",
    "open_dataset",
    "require_part",
    "split_validation",
]
