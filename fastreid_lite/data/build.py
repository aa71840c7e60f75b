"""From a config to the loaders."""

from __future__ import annotations

import dataclasses
from typing import Any

from fastreid_lite.data.datasets.build import build_dataset
from fastreid_lite.data.datasets.combine import combine_train, lost_columns
from fastreid_lite.data.datasets.parts import require_part
from fastreid_lite.data.datasets.validation import split_validation
from fastreid_lite.data.loader import TestLoader, TrainLoader
from fastreid_lite.data.preprocess import Preprocessor
from fastreid_lite.data.samplers.build import build_sampler
from fastreid_lite.data.samples import ReIDData, Samples


def build_train_loader(
    cfg: Any, *, seed: int, rank: int = 0, world_size: int = 1, pin_memory: bool = False
) -> TrainLoader:
    """The training batches of DATASETS.NAMES, without the identities held out by DATASETS.VAL_FRACTION.

    Args:
        cfg: DATASETS, DATALOADER, INPUT, SOLVER.IMS_PER_BATCH, TEST.EXCLUDE_SAME.
        seed: of order and augmentation; the run's, drawn already where SEED is -1.
        rank, world_size: this process, and how many there are.
        pin_memory: for copies to a CUDA device that do not wait.

    Returns:
        The loader. Its ``num_classes``, ``labels`` (whom each class stands for) and ``notes`` (lines for the log) are
        set.

    Raises:
        KeyError, ValueError: a name that is not known, a dataset that is not there, or settings that do not go with the
            images that are, or a batch of fewer than two images for each process.
    """
    batch_size = cfg.SOLVER.IMS_PER_BATCH
    _check_batch(batch_size, world_size)
    datasets, notes = _build_training_sets(cfg)
    samples, labels = combine_train(datasets, cfg.DATASETS.COMBINEALL)
    where = " and ".join(f"{data.name!r} (folder {data.folder!r})" for data in datasets)
    if len(samples) < batch_size:
        raise ValueError(
            f"the training part of {where} has {len(samples)} images, fewer than one batch of {batch_size} "
            f"(SOLVER.IMS_PER_BATCH)"
        )
    try:
        sampler = build_sampler(cfg, samples, seed=seed, world_size=world_size)
    except ValueError as error:
        raise ValueError(f"the training part of {where}: {error}") from error
    loader = TrainLoader(
        samples,
        sampler,
        Preprocessor.from_config(cfg),
        batch_size=batch_size,
        seed=seed,
        num_workers=cfg.DATALOADER.NUM_WORKERS,
        rank=rank,
        world_size=world_size,
        on_broken_image=cfg.DATALOADER.ON_BROKEN_IMAGE,
        pin_memory=pin_memory,
        prefetch_factor=cfg.DATALOADER.PREFETCH_FACTOR,
    )
    loader.labels = labels
    loader.notes = (*notes, *lost_columns(datasets, samples), _summary("training", samples))
    return loader


def build_test_loader(
    cfg: Any,
    name: str,
    *,
    validation: bool = False,
    rank: int = 0,
    world_size: int = 1,
    pin_memory: bool = False,
) -> tuple[TestLoader, Samples, Samples]:
    """The evaluation batches of one dataset: query, then gallery.

    Args:
        cfg: DATASETS, DATALOADER, INPUT, TEST.IMS_PER_BATCH, TEST.EXCLUDE_SAME.
        name: one of DATASETS.TESTS; with ``validation``, one of DATASETS.NAMES.
        validation: evaluate the training identities of ``name`` that DATASETS.VAL_FRACTION holds out, each image a
            query against the others, instead of its test part.
        rank, world_size, pin_memory: see :func:`build_train_loader`.

    Returns:
        The loader over query and gallery concatenated, in this order, so that ``indices`` below ``len(query)`` are
        queries; the query samples; the gallery samples. The loader's ``notes`` are lines for the log.

    Raises:
        KeyError, ValueError: see :func:`build_train_loader`; an empty query or gallery.
    """
    data = build_dataset(cfg, name)
    if validation:
        held_out = _build_split(cfg, data)[1]
        data = dataclasses.replace(data, query=held_out.query, gallery=held_out.gallery)
    query, gallery = require_part(data, "query"), require_part(data, "gallery")
    loader = TestLoader(
        Samples.concatenate([query, gallery]),
        Preprocessor.from_config(cfg),
        batch_size=cfg.TEST.IMS_PER_BATCH,
        num_workers=cfg.DATALOADER.NUM_WORKERS,
        rank=rank,
        world_size=world_size,
        pin_memory=pin_memory,
        prefetch_factor=cfg.DATALOADER.PREFETCH_FACTOR,
    )
    loader.notes = (*_of(data), _summary(f"{name} query", query), _summary(f"{name} gallery", gallery))
    return loader, query, gallery


def _build_training_sets(cfg: Any) -> tuple[list[ReIDData], list[str]]:
    """DATASETS.NAMES as read, less what is held out for validation, and lines about them for the log."""
    datasets: list[ReIDData] = []
    notes: list[str] = []
    for name in cfg.DATASETS.NAMES:
        data = build_dataset(cfg, name)
        notes += _of(data)
        if cfg.DATASETS.VAL_FRACTION:
            kept, held_out = _build_split(cfg, data)
            data = dataclasses.replace(data, train=kept)
            notes.append(_summary(f"{name} held out for validation (DATASETS.VAL_FRACTION)", held_out.query))
        datasets.append(data)
    return datasets, notes


def _build_split(cfg: Any, data: ReIDData) -> tuple[Samples, ReIDData]:
    """What is left of the training images, and what is held out; the same for the training and the validation run."""
    return split_validation(
        require_part(data, "train"),
        cfg.DATASETS.VAL_FRACTION,
        cfg.DATASETS.SPLIT_SEED,
        exclude_same=cfg.TEST.EXCLUDE_SAME,
    )


def _check_batch(batch_size: int, world_size: int) -> None:
    """Refuse a batch in which a process has fewer than two images: batch norm of a feature has no variance of one, and
    losses between images nothing to compare."""
    if batch_size < 2 * world_size:
        raise ValueError(
            f"SOLVER.IMS_PER_BATCH is {batch_size} over {world_size} "
            f"{'processes' if world_size > 1 else 'process'}; each needs at least 2 images, so make it at least "
            f"{2 * world_size}"
        )


def _of(data: ReIDData) -> list[str]:
    return [f"{data.name}: {note}" for note in data.notes]


def _summary(what: str, samples: Samples) -> str:
    cameras = "no cameras" if samples.camids is None else f"{len(set(samples.camids.tolist()))} cameras"
    return f"{what}: {len(samples):,} images of {len(set(samples.pids.tolist())):,} identities, {cameras}"
