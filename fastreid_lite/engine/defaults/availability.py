"""Keys of the config that ask for what this release does not have: refused, or where nothing hangs on them, named."""

from __future__ import annotations

from typing import Any

from fastreid_lite.config.defaults import get_cfg
from fastreid_lite.config.errors import ConfigValueError

# Known for fast-reid's files, and read by nothing here.
_WITHOUT_EFFECT = (
    "MODEL.QUEUE_SIZE",
    "MODEL.BACKBONE.SIE_COE",
    "MODEL.BACKBONE.STRIDE_SIZE",
    "DATALOADER.SET_WEIGHT",
    "KD.MODEL_WEIGHTS",
)


def refuse_unavailable(cfg: Any) -> None:
    """Refuse a config that asks for what is not available, before anything is built.

    Raises:
        ConfigValueError: naming each such key and its value.
    """
    wrong = [
        ("SOLVER.FREEZE_ITERS", cfg.SOLVER.FREEZE_ITERS, cfg.SOLVER.FREEZE_ITERS > 0),
        ("MODEL.FREEZE_LAYERS", list(cfg.MODEL.FREEZE_LAYERS), bool(cfg.MODEL.FREEZE_LAYERS)),
        ("TEST.FLIP.ENABLED", True, cfg.TEST.FLIP.ENABLED),
        ("TEST.PRECISE_BN.ENABLED", True, cfg.TEST.PRECISE_BN.ENABLED),
        ("TEST.RERANK.ENABLED", True, cfg.TEST.RERANK.ENABLED),
        ("TEST.AQE.ENABLED", True, cfg.TEST.AQE.ENABLED),
        ("TEST.ROC.ENABLED", True, cfg.TEST.ROC.ENABLED),
        ("KD.MODEL_CONFIG", list(cfg.KD.MODEL_CONFIG), bool(cfg.KD.MODEL_CONFIG)),
        ("KD.EMA.ENABLED", True, cfg.KD.EMA.ENABLED),
    ]
    asked = [f"{key} {value}" for key, value, unavailable in wrong if unavailable]
    if asked:
        raise ConfigValueError(
            f"the config asks for what this release does not have: {', '.join(asked)}; switch it off "
            f"to train without it"
        )


def warn_without_effect(cfg: Any) -> list[str]:
    """One sentence for each key that differs from its default and that nothing in this release reads.

    Pure: whoever calls it logs them.
    """
    defaults = get_cfg()
    sentences = []
    for key in _WITHOUT_EFFECT:
        value, default = _value(cfg, key), _value(defaults, key)
        if value != default:
            sentences.append(f"{key} {value} takes no effect: nothing in this release reads it (default: {default})")
    return sentences


def _value(cfg: Any, key: str) -> Any:
    """The value of ``key`` ("A.B.C"), a tuple as a list."""
    node = cfg
    for part in key.split("."):
        node = node[part]
    return list(node) if isinstance(node, tuple) else node
