"""Weights to start a backbone from: a file of the user's, or what timm has in its cache. Nothing is downloaded here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from fastreid_lite.checkpoint import CheckpointError, load_checkpoint, weights_of
from fastreid_lite.checkpoint.prefixes import strip_prefixes

logger = logging.getLogger(__name__)

StateDict = dict[str, Tensor]
_KEY = "MODEL.BACKBONE.PRETRAIN_PATH"
_BACKBONE = "backbone."
_SHOWN = 5


def read_state_dict(path: str | Path, wanted: Iterable[str] = ()) -> StateDict:
    """The tensors of a weight file: a plain state dict, or one under the key "model" or "state_dict".

    Prefixes that wrappers left on all names ("module.") are dropped. Where names begin with "backbone." (a checkpoint
    of a whole model) only those are kept, without it.

    Args:
        path: a ``.safetensors`` file, or one of torch, which is read with ``weights_only=True``.
        wanted: names of the backbone, by which a wrapper's prefix is told from a child of that name; empty: all are
            prefixes.

    Raises:
        FileNotFoundError: no such file.
        CheckpointError: the file is damaged, holds something else than tensors by name, or would run code.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{_KEY}: there is no file {str(path)!r}; give the path of a weight file")
    try:
        content = _read_safetensors(path) if path.suffix == ".safetensors" else load_checkpoint(path)
        state = weights_of(content, source=str(path))
        names = strip_prefixes(state, [n for name in wanted for n in (name, _BACKBONE + name)], source=str(path))
    except CheckpointError as error:
        raise CheckpointError(f"{_KEY}: {error}") from error
    state = {names[name]: value for name, value in state.items()}
    if any(name.startswith(_BACKBONE) for name in state):
        state = {name.removeprefix(_BACKBONE): v for name, v in state.items() if name.startswith(_BACKBONE)}
    return state


def _read_safetensors(path: Path) -> StateDict:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} ({path.stat().st_size} bytes) is damaged or no file of safetensors ({error}); use another one"
        ) from error


def load_backbone_weights(
    backbone: nn.Module, path: str | Path, *, convert: Callable[[StateDict, nn.Module], StateDict] | None = None
) -> None:
    """Put the weights of a file into ``backbone`` and log what was missing and what was left over.

    Args:
        backbone: changed in place.
        path: see :func:`read_state_dict`.
        convert: turns the tensors of the file into those of the backbone; None where the names are the same.

    Raises:
        FileNotFoundError, CheckpointError: see :func:`read_state_dict`.
        ValueError: no name of the file is one of the backbone, or a shape differs.
    """
    wanted = backbone.state_dict()
    state = read_state_dict(path, wanted)
    if convert is not None:
        state = convert(state, backbone)
    matching = {name: value for name, value in state.items() if name in wanted}
    if not matching:
        raise ValueError(
            f"{_KEY}: no name in {str(path)!r} (such as {next(iter(state), 'none')!r}) is one of "
            f"{type(backbone).__name__} (such as {next(iter(wanted))!r}); give weights of this backbone"
        )
    for name, value in matching.items():
        if value.shape != wanted[name].shape:
            raise ValueError(
                f"{_KEY}: {name!r} in {str(path)!r} has shape {tuple(value.shape)}, the "
                f"backbone's is {tuple(wanted[name].shape)}; give weights of this backbone (MODEL.BACKBONE.DEPTH?)"
            )
    backbone.load_state_dict(matching, strict=False)
    logger.info("backbone: %d of %d tensors read from %s", len(matching), len(wanted), path)
    # A counter of batches is absent from old files and changes nothing.
    missing = [name for name in wanted if name not in matching and not name.endswith("num_batches_tracked")]
    if missing:
        logger.warning(
            "backbone: %d tensors keep their random values, not in %s: %s", len(missing), path, _names(missing)
        )
    unexpected = [name for name in state if name not in wanted]
    if unexpected:
        logger.info("backbone: %d tensors of %s are not used: %s", len(unexpected), path, _names(unexpected))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def cached_timm_weights(name: str) -> Path:
    """The file of timm's pretrained weights for the network ``name``, if this machine has it already.

    Args:
        name: a network of timm, with or without a tag ("resnet50", "resnet50.tv_in1k").

    Raises:
        FileNotFoundError: the file is not in the cache, or timm has no weights for this network.
    """
    from timm.models import get_pretrained_cfg

    config = get_pretrained_cfg(name)
    source = None
    if config is not None and config.hf_hub_id:
        source = f"https://huggingface.co/{config.hf_hub_id}"
        found = _in_hub_cache(config.hf_hub_id, config.hf_hub_filename)
        if found is not None:
            return found
    if config is not None and config.url:
        source = source or config.url
        candidate = Path(torch.hub.get_dir()) / "checkpoints" / config.url.rsplit("/", 1)[-1]
        if candidate.is_file():
            return candidate
    where = f"; timm's are at {source}, to be put into its cache by a machine with a network" if source else ""
    raise FileNotFoundError(
        f"MODEL.BACKBONE.PRETRAIN is True, MODEL.BACKBONE.PRETRAIN_PATH is empty, and timm's cache has no weights for "
        f"{name!r}: set MODEL.BACKBONE.PRETRAIN_PATH to a weight file, or MODEL.BACKBONE.PRETRAIN to False to start "
        f"from random values{where}"
    )


def _in_hub_cache(repository: str, filename: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    repository, _, revision = repository.partition("@")
    for candidate in [filename] if filename else ["model.safetensors", "pytorch_model.bin"]:
        found = try_to_load_from_cache(repository, candidate, revision=revision or None)
        if isinstance(found, str):
            return Path(found)
    return None
