"""The state of a trainer as a tree of plain containers and tensors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch

from fastreid_lite.engine.random_state import random_state, set_random_state
from fastreid_lite.utils import comm
from fastreid_lite.utils.env import versions

if TYPE_CHECKING:
    from fastreid_lite.engine.train_loop import TrainerBase

logger = logging.getLogger(__name__)


def gather_state(trainer: TrainerBase) -> dict[str, Any]:
    """Counters, hooks, triggers, turns still to come, numbers, and the random state of every process.

    "iteration" is the step in progress: at a boundary, where this is taken, it is done. Collective.
    """
    own = {"random": random_state(), "storage": trainer.storage.local_state_dict()}
    hooks = trainer.hook_table.hooks
    return {
        "iteration": trainer.iter,
        "epoch": trainer.epoch,
        "trainer": {
            "epoch_step": trainer.epoch_step,
            "epoch_ended": trainer.epoch_ended,
            "epoch_length": trainer.epoch_length,
            "max_iter": trainer.max_iter,
            "seconds": trainer.agreement.seconds,
            "hooks": {str(hook.name): state for hook in hooks if (state := hook.state_dict())},
            "triggers": {
                str(hook.name): state
                for hook in hooks
                if hook.trigger is not None and (state := hook.trigger.state_dict())
            },
            "boundary": trainer.boundary.state_dict(),
            "storage": trainer.storage.state_dict(),
            "feed": {} if trainer.data_loader is None else trainer._loaded_feed().state_dict(),
            "ranks": comm.all_gather_object(own),
            "environment": {**versions(), "threads": str(torch.get_num_threads())},
        },
    }


def restore_hooks(trainer: TrainerBase, state: dict[str, Any]) -> None:
    """Put counters, hooks, triggers, turns and numbers back, before any hook is called."""
    saved = state["trainer"]
    trainer.epoch, trainer.epoch_step = state["epoch"], saved["epoch_step"]
    trainer.epoch_ended = saved["epoch_ended"]
    trainer.agreement.seconds = saved["seconds"]
    trainer.agreement.start(trainer.iter)
    trainer.storage.load_state_dict(saved["storage"])
    rank = comm.get_rank()
    trainer.storage.load_local_state_dict(saved["ranks"][rank]["storage"] if rank < len(saved["ranks"]) else {})
    if trainer.data_loader is not None:
        trainer._loaded_feed().load_state_dict(saved["feed"])
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


def _report_differences(saved: dict[str, str]) -> None:
    now = {**versions(), "threads": str(torch.get_num_threads())}
    changed = [
        f"{name} {saved[name]} -> {now[name]}" for name in sorted(saved) if name in now and saved[name] != now[name]
    ]
    if changed:
        logger.warning(
            f"not the environment of the checkpoint, so bytes may differ from there on: {', '.join(changed)}"
        )
