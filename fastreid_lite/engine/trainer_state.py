"""The state of a trainer as a tree of plain containers and tensors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fastreid_lite.checkpoint.errors import CheckpointError
from fastreid_lite.engine.random_state import random_state, set_random_state
from fastreid_lite.utils import comm
from fastreid_lite.utils.env import versions

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

logger = logging.getLogger(__name__)


def gather_state(trainer: TrainerBase) -> dict[str, Any]:
    """Counters, hooks, triggers, turns still to come, numbers, and the random state of every process.

    "iteration" is the last step done: at a boundary the one in progress, before and after a run the one before. The
    counters are those of that boundary, so that the turns still to come are taken there. Collective.
    """
    own = {"random": random_state(), "storage": trainer.storage.local_state_dict()}
    hooks = trainer.hook_table.hooks
    cut = trainer._cut_epoch and trainer.epoch_ended
    return {
        "iteration": trainer.iter if trainer.boundary.standing else trainer.iter - 1,
        "epoch": trainer.epoch,
        "trainer": {
            "epoch_step": trainer.epoch_step,
            "epoch_ended": trainer.epoch_ended,
            "epoch_length": trainer.epoch_length,
            "max_iter": trainer.max_iter,
            "ending": trainer.ending,
            "cut_epoch": trainer._cut_epoch and not trainer.epoch_ended,
            "seconds": trainer.agreement.seconds,
            "hooks": {str(hook.name): state for hook in hooks if (state := hook.state_dict())},
            "triggers": {
                str(hook.name): state
                for hook in hooks
                if hook.trigger is not None and (state := hook.trigger.state_dict())
            },
            "boundary": trainer.boundary.state_dict(),
            "storage": trainer.storage.state_dict(),
            "feed": {} if trainer.data_loader is None else trainer._loaded_feed().state_dict(cut=cut),
            "ranks": comm.all_gather_object(own),
            "environment": {**versions(), "threads": str(torch.get_num_threads())},
        },
    }


def restore_hooks(trainer: TrainerBase, state: dict[str, Any]) -> tuple[int, int, bool, bool]:
    """Put counters, hooks, triggers, turns and numbers back, before any hook is called.

    Returns:
        epoch, steps done in it, and whether it ended at the boundary of the checkpoint; whether the run ended there.
    """
    saved = state["trainer"]
    at_boundary = (state["epoch"], saved["epoch_step"], saved["epoch_ended"])
    trainer.epoch, trainer.epoch_step = (state["epoch"] + 1, 0) if saved["epoch_ended"] else at_boundary[:2]
    trainer.epoch_ended, trainer._cut_epoch = False, saved["cut_epoch"]
    trainer.agreement.seconds = saved["seconds"]
    trainer.agreement.start(trainer.iter)
    trainer.storage.load_state_dict(saved["storage"])
    rank = comm.get_rank()
    trainer.storage.load_local_state_dict(saved["ranks"][rank]["storage"] if rank < len(saved["ranks"]) else {})
    if trainer.data_loader is not None:
        feed = trainer._loaded_feed()
        feed.load_state_dict(saved["feed"])
        if feed.epoch_length is None:
            # A loader without a length shows it only at the end of an epoch, and the run has seen one.
            feed.epoch_length = saved["epoch_length"]
    hooks = {str(hook.name): hook for hook in trainer.hook_table.hooks}
    for kind, states in (("hook", saved["hooks"]), ("trigger", saved["triggers"])):
        for name, part in states.items():
            target = hooks.get(name) if kind == "hook" else getattr(hooks.get(name), "trigger", None)
            if target is None:
                logger.warning(
                    f"the checkpoint has the state of a {kind} {name!r} that this run does not have: left out"
                )
            else:
                target.load_state_dict(part)
    trainer.boundary.load_state_dict(saved["boundary"])
    trainer.boundary.turns = {name: due for name, due in trainer.boundary.turns.items() if name in hooks}
    _report_differences(saved["environment"])
    # A run that was stopped and given more steps goes on; one that was only cut off in its ending completes it.
    return (*at_boundary, saved["ending"] and saved["max_iter"] == trainer.max_iter)


def restore_before_first_step(state: dict[str, Any]) -> None:
    """Put the random state back: last, so that nothing that happens before the first step can move it."""
    ranks = state["trainer"]["ranks"]
    if comm.get_world_size() != len(ranks):
        logger.warning(
            f"this run has {comm.get_world_size()} processes, the one that it resumes had {len(ranks)}: the order of "
            f"samples is kept, but sums are added in another order, so weights are close and not equal byte for byte"
        )
    if comm.get_rank() < len(ranks):
        set_random_state(ranks[comm.get_rank()]["random"])


def load_model(model: nn.Module, saved: dict[str, torch.Tensor]) -> None:
    """Put the weights and buffers of a checkpoint into ``model``, the bare one.

    Raises:
        CheckpointError: they are another model's; nothing was changed.
    """
    own = model.state_dict()
    differences = [
        *(f"{name} is missing" for name in own if name not in saved),
        *(f"{name} is not in this model" for name in saved if name not in own),
        *(
            f"{name} has shape {tuple(saved[name].shape)}, here {tuple(value.shape)}"
            for name, value in own.items()
            if isinstance(value, torch.Tensor) and name in saved and saved[name].shape != value.shape
        ),
    ]
    if differences:
        more = f", and {len(differences) - 4} more" if len(differences) > 4 else ""
        raise CheckpointError(
            f"the checkpoint is not of this {type(model).__name__}: {', '.join(differences[:4])}{more}. Resume with "
            f"the config that it was written with, or begin a new run from its weights"
        )
    model.load_state_dict(saved)


def load_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Put the state of a checkpoint into ``optimizer``.

    Raises:
        CheckpointError: it is another kind's, or over other parameters; nothing was changed.
    """
    kind = type(optimizer).__name__
    own, found = [
        [(len(group["params"]), set(group) - {"params"}) for group in groups]
        for groups in (optimizer.param_groups, saved["param_groups"])
    ]
    sizes, saved_sizes = [size for size, _ in own], [size for size, _ in found]
    if sizes != saved_sizes:
        raise CheckpointError(
            f"the optimizer of the checkpoint has groups of {saved_sizes} parameters, this {kind} of {sizes}: resume "
            f"with the config that it was written with, or begin a new run from its weights"
        )
    for (_, options), (_, saved_options) in zip(own, found):
        missing, strange = sorted(options - saved_options), sorted(saved_options - options)
        # Another version of torch adds options or takes some away; another kind of optimizer does both.
        if missing and strange:
            raise CheckpointError(
                f"the state in the checkpoint is of another optimizer than this {kind}: it has {', '.join(strange)} "
                f"and lacks {', '.join(missing)}. Resume with the optimizer that it was written with, or begin a new "
                f"run from its weights"
            )
    optimizer.load_state_dict(saved)


def _report_differences(saved: dict[str, str]) -> None:
    now = {**versions(), "threads": str(torch.get_num_threads())}
    changed = [
        f"{name} {saved[name]} -> {now[name]}" for name in sorted(saved) if name in now and saved[name] != now[name]
    ]
    if changed:
        logger.warning(
            f"not the environment of the checkpoint, so bytes may differ from there on: {', '.join(changed)}"
        )
