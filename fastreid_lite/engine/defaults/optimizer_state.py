"""An optimizer's state by the names of parameters, so that rates, decays and so the groups may change on resume."""

from __future__ import annotations

from typing import Any

import torch

from fastreid_lite.checkpoint import CheckpointError

# Options that say who is in a group, not how it is updated.
_LABELS = {"params", "param_names", "name", "frozen"}


def regroup(saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """``saved`` in the groups of ``optimizer``, whose rates, decays and other options are kept.

    Args:
        saved: the state dict of an optimizer whose groups have ``param_names``.
        optimizer: its groups have ``param_names`` too.

    Raises:
        CheckpointError: it is another kind of optimizer, or updated other parameters.
    """
    current = optimizer.state_dict()
    found, own = [{key for group in state["param_groups"] for key in group} - _LABELS for state in (saved, current)]
    # Another version of torch adds options or takes some away; another kind of optimizer does both.
    if found - own and own - found:
        raise CheckpointError(
            f"the checkpoint is of another optimizer than SOLVER.OPT {type(optimizer).__name__}: it has "
            f"{', '.join(sorted(found - own))}; resume with the one that it was trained with"
        )
    index_of = {
        name: index
        for group in saved["param_groups"]
        for name, index in zip(group["param_names"], group["params"], strict=True)
    }
    names = [
        (name, index)
        for group in current["param_groups"]
        for name, index in zip(group["param_names"], group["params"], strict=True)
    ]
    missing = sorted({name for name, _ in names} - index_of.keys())
    gone = sorted(index_of.keys() - {name for name, _ in names})
    if missing or gone:
        first = f"the first without a state is {missing[0]}" if missing else f"the first too many is {gone[0]}"
        raise CheckpointError(
            f"the checkpoint's optimizer updates other parameters than this run's: {len(missing)} have no state in it, "
            f"{len(gone)} are not in this run; {first}"
        )
    states = {index: saved["state"][index_of[name]] for name, index in names if index_of[name] in saved["state"]}
    return {"state": states, "param_groups": current["param_groups"]}
