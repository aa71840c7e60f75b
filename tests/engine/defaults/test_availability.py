from __future__ import annotations

import pytest

from fastreid_lite.config import ConfigValueError, get_cfg, load_config
from fastreid_lite.engine.defaults.availability import refuse_unavailable, warn_without_effect


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["SOLVER.FREEZE_ITERS", "100"], "SOLVER.FREEZE_ITERS 100"),
        (["MODEL.FREEZE_LAYERS", "[backbone]"], r"MODEL.FREEZE_LAYERS \['backbone'\]"),
        (["TEST.FLIP.ENABLED", "True"], "TEST.FLIP.ENABLED True"),
        (["TEST.PRECISE_BN.ENABLED", "True"], "TEST.PRECISE_BN.ENABLED True"),
        (["TEST.RERANK.ENABLED", "True"], "TEST.RERANK.ENABLED True"),
        (["TEST.AQE.ENABLED", "True"], "TEST.AQE.ENABLED True"),
        (["TEST.ROC.ENABLED", "True"], "TEST.ROC.ENABLED True"),
        (["KD.MODEL_CONFIG", "[teacher.yml]"], r"KD.MODEL_CONFIG \['teacher.yml'\]"),
        (["KD.EMA.ENABLED", "True"], "KD.EMA.ENABLED True"),
    ],
)
def test_what_is_not_there_is_refused_with_key_and_value(options: list[str], said: str) -> None:
    with pytest.raises(ConfigValueError, match=said):
        refuse_unavailable(load_config(None, options))


def test_all_refused_keys_are_named_at_once() -> None:
    cfg = load_config(None, ["TEST.AQE.ENABLED", "True", "KD.EMA.ENABLED", "True"])
    with pytest.raises(ConfigValueError, match="TEST.AQE.ENABLED True, KD.EMA.ENABLED True"):
        refuse_unavailable(cfg)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["MODEL.QUEUE_SIZE", "4096"], "MODEL.QUEUE_SIZE 4096 takes no effect"),
        (["MODEL.BACKBONE.SIE_COE", "1.5"], "MODEL.BACKBONE.SIE_COE 1.5 takes no effect"),
        (["MODEL.BACKBONE.STRIDE_SIZE", "[12, 12]"], "MODEL.BACKBONE.STRIDE_SIZE [12, 12] takes no effect"),
        (["DATALOADER.SET_WEIGHT", "[1, 2]"], "DATALOADER.SET_WEIGHT [1, 2] takes no effect"),
        (["KD.MODEL_WEIGHTS", "[teacher.pth]"], "KD.MODEL_WEIGHTS ['teacher.pth'] takes no effect"),
    ],
)
def test_a_key_that_nothing_reads_is_said_to_take_no_effect(options: list[str], said: str) -> None:
    sentences = warn_without_effect(load_config(None, options))
    assert len(sentences) == 1 and said in sentences[0] and "\n" not in sentences[0]


def test_defaults_are_neither_refused_nor_warned_of() -> None:
    refuse_unavailable(get_cfg())
    assert warn_without_effect(get_cfg()) == []
    written_out = ["MODEL.BACKBONE.STRIDE_SIZE", "[16, 16]", "DATALOADER.SET_WEIGHT", "[]", "MODEL.QUEUE_SIZE", "8192"]
    assert warn_without_effect(load_config(None, written_out)) == []
