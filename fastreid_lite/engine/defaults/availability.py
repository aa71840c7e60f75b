"""Keys of the config that ask for what this release does not have: refused, never ignored."""

from __future__ import annotations

from typing import Any

from fastreid_lite.config.errors import ConfigValueError


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
