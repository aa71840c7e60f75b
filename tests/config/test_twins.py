"""A length in epochs and the same in iterations: the one given last counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.config import CfgNode, ConfigTypeError, ConfigValueError, get_cfg, load_config
from fastreid_lite.config.schema import TWINS

Write = Callable[[str, str], Path]


def read(cfg: CfgNode, key: str) -> Any:
    node: Any = cfg
    for name in key.split("."):
        node = node[name]
    return node


def a_value(key: str) -> str:
    return "[3, 4]" if "STEPS" in key else "3"


@pytest.mark.parametrize(("epochs", "iterations"), TWINS)
def test_giving_one_takes_the_other_away(epochs: str, iterations: str) -> None:
    cfg = get_cfg()
    assert read(cfg, epochs) is not None and read(cfg, iterations) is None
    cfg.merge_from_list([iterations, a_value(iterations)])
    assert read(cfg, epochs) is None and str(read(cfg, iterations)) == a_value(iterations)
    cfg.merge_from_list([epochs, a_value(epochs)])
    assert read(cfg, iterations) is None and str(read(cfg, epochs)) == a_value(epochs)


def test_the_command_line_wins_over_the_file_and_the_file_over_its_base(write: Write) -> None:
    write("base.yml", "SOLVER: {MAX_ITER: 10, STEPS_ITERS: [5]}\nTEST: {EVAL_PERIOD_ITERS: 4}\n")
    top = write("top.yml", "_BASE_: base.yml\nSOLVER: {MAX_EPOCH: 2}\n")
    cfg = load_config(top)
    assert (cfg.SOLVER.MAX_EPOCH, cfg.SOLVER.MAX_ITER) == (2, None)
    assert (cfg.SOLVER.STEPS, cfg.SOLVER.STEPS_ITERS) == (None, [5])
    assert (cfg.TEST.EVAL_PERIOD, cfg.TEST.EVAL_PERIOD_ITERS) == (None, 4)
    cfg = load_config(top, ["SOLVER.MAX_ITER=7", "TEST.EVAL_PERIOD", "1"])
    assert (cfg.SOLVER.MAX_EPOCH, cfg.SOLVER.MAX_ITER) == (None, 7)
    assert (cfg.TEST.EVAL_PERIOD, cfg.TEST.EVAL_PERIOD_ITERS) == (1, None)


@pytest.mark.parametrize(("epochs", "iterations"), TWINS)
def test_both_in_one_file_or_on_one_command_line_is_an_error(epochs: str, iterations: str, write: Write) -> None:
    section, one = epochs.split(".")
    other = iterations.split(".")[1]
    path = write("c.yml", f"{section}:\n  {one}: {a_value(one)}\n  {other}: {a_value(other)}\n")
    with pytest.raises(ConfigValueError, match=rf"{epochs} \(c.yml, line 2\) and {iterations} \(c.yml, line 3\) say"):
        get_cfg().merge_from_file(path)
    with pytest.raises(ConfigValueError, match=rf"{epochs} \(command line\) and {iterations} \(command line\) say"):
        get_cfg().merge_from_list([epochs, a_value(one), iterations, a_value(other)])


def test_none_is_no_giving(write: Write) -> None:
    cfg = get_cfg()
    cfg.merge_from_file(write("c.yml", "SOLVER: {MAX_ITER: null, MAX_EPOCH: 7, STEPS: null, STEPS_ITERS: [5]}\n"))
    assert (cfg.SOLVER.MAX_EPOCH, cfg.SOLVER.MAX_ITER) == (7, None)
    assert (cfg.SOLVER.STEPS, cfg.SOLVER.STEPS_ITERS) == (None, [5])
    cfg.merge_from_list(["SOLVER.MAX_ITER", "None"])
    assert cfg.SOLVER.MAX_EPOCH == 7


def test_none_for_the_one_in_force_is_refused(write: Write) -> None:
    with pytest.raises(
        ConfigValueError, match=r"SOLVER.MAX_EPOCH cannot be None \(command line\): give SOLVER.MAX_ITER"
    ):
        get_cfg().merge_from_list(["SOLVER.MAX_EPOCH", "None"])


def test_a_twin_keeps_its_type_while_it_is_none() -> None:
    cfg = get_cfg()
    with pytest.raises(ConfigTypeError, match="SOLVER.MAX_ITER takes an int or None, not 1.5, a float"):
        cfg.merge_from_list(["SOLVER.MAX_ITER", "1.5"])
    with pytest.raises(ConfigTypeError, match="SOLVER.STEPS_ITERS takes a list of ints or None, not 'x', a str"):
        cfg.merge_from_list(["SOLVER.STEPS_ITERS", "x"])
    cfg.merge_from_list(["SOLVER.MAX_ITER", "5", "SOLVER.STEPS_ITERS", "(1, 2)"])
    with pytest.raises(ConfigTypeError, match="SOLVER.MAX_EPOCH takes an int or None, not True, a bool"):
        cfg.merge_from_list(["SOLVER.MAX_EPOCH", "True"])
    assert cfg.SOLVER.STEPS_ITERS == [1, 2]


def test_a_whole_config_merged_into_another_brings_its_choice() -> None:
    cfg, other = get_cfg(), get_cfg()
    other.merge_from_list(["SOLVER.MAX_ITER", "5"])
    cfg.merge_from_other_cfg(other)
    assert cfg == other


def test_assigning_one_takes_the_other_away_too() -> None:
    cfg = get_cfg()
    cfg.SOLVER.MAX_ITER = 5
    assert cfg.SOLVER.MAX_EPOCH is None
    cfg.SOLVER.MAX_EPOCH = 2
    assert cfg.SOLVER.MAX_ITER is None


def test_a_tree_that_has_only_one_of_the_two_gets_no_other() -> None:
    cfg = CfgNode({"SOLVER": {"MAX_ITER": 3}})
    cfg.merge_from_list(["SOLVER.MAX_ITER", "5"])
    assert cfg.SOLVER == {"MAX_ITER": 5}
