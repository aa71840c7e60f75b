"""Prefixes that wrappers left on the names in a file."""

from __future__ import annotations

from collections.abc import Iterable

from fastreid_lite.checkpoint.errors import CheckpointError

WRAPPER_PREFIXES = ("module.", "_orig_mod.")


def strip_prefixes(names: Iterable[str], wanted: Iterable[str], *, source: str) -> dict[str, str]:
    """Each name in a file and the name without the prefixes that DistributedDataParallel or torch.compile left.

    A prefix goes if all names have it, also a doubled one, unless it belongs to a child that is really called so: of
    the candidates (no prefix off, one, two, ...) the one that has most names in common with the model is taken, and of
    equals the one with the most off.

    >>> strip_prefixes(["module.a.weight", "module.b"], ["a.weight", "b"], source="x.pth")
    {'module.a.weight': 'a.weight', 'module.b': 'b'}

    Args:
        names: names in the file.
        wanted: names in the model, without prefixes of wrappers.
        source: the file, for messages.

    Raises:
        CheckpointError: only some of the names have a prefix that the model does not know.
    """
    original, known = list(names), set(wanted)
    candidates = [original]
    while True:
        last = candidates[-1]
        prefix = next((p for p in WRAPPER_PREFIXES if last and all(name.startswith(p) for name in last)), None)
        if prefix is None:
            break
        candidates.append([name.removeprefix(prefix) for name in last])
    best = max(reversed(candidates), key=lambda candidate: len(known.intersection(candidate)))
    _refuse_mixed(best, known, source)
    return dict(zip(original, best))


def _refuse_mixed(names: list[str], known: set[str], source: str) -> None:
    for prefix in WRAPPER_PREFIXES:
        strays = [
            name
            for name in names
            if name.startswith(prefix) and name not in known and name.removeprefix(prefix) in known
        ]
        if strays:
            raise CheckpointError(
                f"{len(strays)} of the {len(names)} names in {source} begin with {prefix!r} (as {strays[0]!r}) and the "
                f"others do not, so it was put together from two models; nothing was loaded. Save it again from one"
            )
