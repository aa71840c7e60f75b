"""Weights of a file into a model: for a new run, for evaluation, for resuming."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fastreid_lite.checkpoint.errors import CheckpointError
from fastreid_lite.checkpoint.keys import KEY_TABLES
from fastreid_lite.checkpoint.prefixes import strip_prefixes
from fastreid_lite.checkpoint.report import LoadReport, Mismatch, shorten
from fastreid_lite.checkpoint.wrappers import clean_names

# One row a class, in the names of our heads and of the linear classifiers of other re-id code.
_CLASSIFIER = re.compile(r"heads\.(?:weight|classifier(?:\..+)?\.(?:weight|bias)|classifier)")
_WEIGHTS_UNDER = ("model", "state_dict")

logger = logging.getLogger(__name__)


def weights_of(state: Any, *, source: str = "the checkpoint") -> dict[str, torch.Tensor]:
    """The weights in what a file holds: a bare state dict, ``{"model": ...}`` or ``{"state_dict": ...}``.

    Raises:
        CheckpointError: none of these; the message names the entries found.
    """
    if isinstance(state, nn.Module):
        raise CheckpointError(
            f"{source} is a whole module ({type(state).__name__}), not weights; save its state_dict() instead, since a "
            f"pickled module runs code when it is loaded and breaks when its class moves"
        )
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{source} holds a {type(state).__name__}; expected a dict of weights")
    candidates = [state[key] for key in _WEIGHTS_UNDER if isinstance(state.get(key), Mapping)] + [state]
    for candidate in candidates:
        if candidate and all(isinstance(key, str) and torch.is_tensor(value) for key, value in candidate.items()):
            return dict(candidate)
    found = shorten([f"{key} ({type(value).__name__})" for key, value in state.items()]) or "nothing"
    raise CheckpointError(
        f"{source} has no weights that are recognised: expected names and tensors, as they are or under 'model' or "
        f"'state_dict', found {found}"
    )


def load_weights(model: nn.Module, state: Any, *, strict_backbone: bool, source: str = "the checkpoint") -> LoadReport:
    """Copy the weights of a checkpoint into ``model``, wrapped or not: for MODEL.WEIGHTS and for evaluation.

    Names that wrappers prefixed are cleaned, old names of fast-reid are converted. The classifier (``heads.weight`` and
    what else under ``heads.`` has a row a class) is skipped, with one line, where the numbers of classes differ or the
    file has none: features do not depend on it. All else that is missing, unexpected or of another shape is listed. In
    every case of an error the model is as before.

    Args:
        model: gets the weights; its device and types stay.
        state: what a file holds, see :func:`weights_of`.
        strict_backbone: whether a missing or mismatched tensor, other than the classifier's, is an error (evaluation: a
            metric of a partly random network is worse than none) or a warning (a new run).
        source: the file, for messages.

    Returns:
        What was loaded and what was not.

    Raises:
        CheckpointError: no weights in ``state``, not one name in common with the model, names of which only some have a
            wrapper's prefix, or, with ``strict_backbone``, a tensor missing or of another shape.
    """
    found = weights_of(state, source=source)
    raw_names = {clean: raw for raw, clean in clean_names(model).items()}
    model_state = model.state_dict()
    in_model = {clean: model_state[raw] for clean, raw in raw_names.items() if torch.is_tensor(model_state[raw])}
    in_file = _with_our_names(found, in_model, source)
    report = _compare(in_file, in_model, source)
    if not report.loaded:
        raise CheckpointError(
            f"not one of the {len(found)} tensors in {source} fits the model: the file has "
            f"{shorten(sorted(found)[:3])}, the model {shorten(sorted(in_model)[:3])}; is it of another model?"
        )
    if strict_backbone and not report.is_complete:
        raise CheckpointError(
            f"{source} does not fit the model, and evaluating a network of which a part is random would mean nothing: "
            f"{report.problems()}"
        )
    with torch.no_grad():
        for name in report.loaded:
            in_model[name].copy_(in_file[name])
    _log(report)
    return report


def load_strict(model: nn.Module, weights: Mapping[str, torch.Tensor], *, source: str = "the checkpoint") -> None:
    """Copy every tensor of ``weights`` into ``model``, wrapped or not: for resuming.

    Args:
        model: gets the weights.
        weights: names as :func:`~fastreid_lite.checkpoint.wrappers.clean_state_dict` gives them.
        source: the file, for messages.

    Raises:
        CheckpointError: a name is missing or unexpected, or a shape differs; the model is as before.
    """
    model_state = model.state_dict()
    in_model = {clean: model_state[raw] for raw, clean in clean_names(model).items()}
    missing = tuple(name for name in in_model if name not in weights)
    unexpected = tuple(name for name in weights if name not in in_model)
    mismatched = tuple(_mismatches(weights, in_model))
    if missing or unexpected or mismatched:
        report = LoadReport(source=source, missing=missing, unexpected=unexpected, mismatched=mismatched)
        raise CheckpointError(
            f"{source} was written by a run of another model, so this run cannot go on from it: {report.problems()}. "
            f"To start a new run from its weights, set MODEL.WEIGHTS to it"
        )
    raw_names = {clean: raw for raw, clean in clean_names(model).items()}
    model.load_state_dict({raw_names[name]: value for name, value in weights.items()}, strict=True)


def _with_our_names(
    found: dict[str, torch.Tensor], in_model: dict[str, torch.Tensor], source: str
) -> dict[str, torch.Tensor]:
    names = strip_prefixes(found, in_model, source=source)
    tensors = {names[raw]: tensor for raw, tensor in found.items()}
    for table in KEY_TABLES:
        renamed = table.rename(tensors, in_model)
        tensors = {new: tensors[old] for old, new in renamed.items() if new is not None}
    return tensors


def _compare(in_file: dict[str, torch.Tensor], in_model: dict[str, torch.Tensor], source: str) -> LoadReport:
    classes_in_file, classes_in_model = _class_count(in_file), _class_count(in_model)

    def is_classifier(name: str) -> bool:
        """Whether ``name`` is of the classifier, of another size or absent."""
        if _CLASSIFIER.fullmatch(name):
            return True
        mine, theirs = in_model.get(name), in_file.get(name)
        return (
            name.startswith("heads.")
            and mine is not None
            and theirs is not None
            and mine.dim() == theirs.dim() > 0
            and (theirs.shape[0], mine.shape[0]) == (classes_in_file, classes_in_model)
        )

    missing = [name for name in in_model if name not in in_file and not _counts_only(name)]
    mismatched = list(_mismatches(in_file, in_model))
    bad_shape = {mismatch.name for mismatch in mismatched}
    skipped = [name for name in in_model if (name in bad_shape or name in missing) and is_classifier(name)]
    return LoadReport(
        source=source,
        loaded=tuple(name for name in in_model if name in in_file and name not in bad_shape),
        missing=tuple(name for name in missing if name not in skipped),
        unexpected=tuple(name for name in in_file if name not in in_model),
        mismatched=tuple(mismatch for mismatch in mismatched if mismatch.name not in skipped),
        classifier=tuple(skipped),
    )


def _mismatches(in_file: Mapping[str, torch.Tensor], in_model: Mapping[str, torch.Tensor]) -> list[Mismatch]:
    return [
        Mismatch(name=name, in_file=tuple(in_file[name].shape), in_model=tuple(tensor.shape))
        for name, tensor in in_model.items()
        if name in in_file and in_file[name].shape != tensor.shape
    ]


def _class_count(tensors: Mapping[str, torch.Tensor]) -> int | None:
    """Rows of the classifier; None where there is no classifier."""
    return next((len(tensor) for name, tensor in tensors.items() if _CLASSIFIER.fullmatch(name) and tensor.dim()), None)


def _counts_only(name: str) -> bool:
    """A batch norm's counter of batches: files before torch 0.4.1 have none, and no output depends on it."""
    return name.endswith("num_batches_tracked")


def _log(report: LoadReport) -> None:
    if report.classifier:
        logger.info(
            "the classifier (%s) was not taken from %s, which has another number of classes or none",
            shorten(report.classifier),
            report.source,
        )
    if report.problems():
        logger.warning(
            "of %s %d tensors were loaded, not these: %s", report.source, len(report.loaded), report.problems()
        )
    else:
        logger.info("loaded %d tensors from %s", len(report.loaded), report.source)
