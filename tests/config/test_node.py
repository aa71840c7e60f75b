"""CF-03: frozen configs, clones and new keys; and dumps that can be read again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.config import CfgNode, ConfigKeyError, ConfigTypeError, get_cfg

Write = Callable[[str, str], Path]


def make_cfg() -> CfgNode:
    return CfgNode({"A": 0, "SUB": {"KEY": 1, "NAMES": ("x",)}})


def merges(write: Write, name: str, value: str) -> list[Callable[[CfgNode], None]]:
    """The three ways to merge SUB.`name`."""
    path = write("c.yml", f"SUB: {{{name}: {value}}}\n")
    return [
        lambda cfg: cfg.merge_from_file(path),
        lambda cfg: cfg.merge_from_list([f"SUB.{name}", value]),
        lambda cfg: cfg.merge_from_other_cfg(CfgNode({"SUB": {name: int(value)}})),
    ]


def test_a_frozen_config_refuses_every_merge_until_it_is_defrosted(write: Write) -> None:
    for merge in merges(write, "KEY", "5"):
        cfg = make_cfg()
        cfg.freeze()
        with pytest.raises(ConfigTypeError, match="the config is frozen: .* cannot be merged"):
            merge(cfg)
        assert cfg.SUB.KEY == 1
        cfg.defrost()
        merge(cfg)
        assert cfg.SUB.KEY == 5


def test_a_frozen_section_refuses_a_merge_into_it(write: Write) -> None:
    for merge in merges(write, "KEY", "5"):
        cfg = make_cfg()
        cfg.SUB.freeze()
        with pytest.raises(ConfigTypeError, match="the config is frozen: SUB.KEY cannot be merged"):
            merge(cfg)


def test_a_frozen_config_refuses_assignments() -> None:
    cfg = make_cfg()
    cfg.freeze()
    with pytest.raises(AttributeError, match="immutable|frozen"):
        cfg.SUB.KEY = 2
    with pytest.raises(AttributeError, match="the config is frozen: KEY cannot be set to 2"):
        cfg["SUB"]["KEY"] = 2


def test_a_clone_shares_nothing_and_is_as_frozen() -> None:
    cfg = make_cfg()
    cfg.freeze()
    clone = cfg.clone()
    assert clone == cfg and clone.is_frozen() and type(clone.SUB) is CfgNode
    clone.defrost()
    clone.merge_from_list(["SUB.KEY", "9", "SUB.NAMES", "[]"])
    assert (cfg.SUB.KEY, cfg.SUB.NAMES, cfg.SUB.is_frozen()) == (1, ("x",), True)
    for other in (copy.copy(cfg), pickle.loads(pickle.dumps(cfg))):
        assert other == cfg and other.is_frozen()


def test_two_default_configs_share_nothing() -> None:
    one, two = get_cfg(), get_cfg()
    one.INPUT.SIZE_TRAIN.append(3)
    one.MODEL.HEADS.NAME = "Mine"
    assert (two.INPUT.SIZE_TRAIN, two.MODEL.HEADS.NAME) == ([256, 128], "EmbeddingHead")


def test_new_keys_are_refused_on_every_path(write: Write) -> None:
    for merge in merges(write, "NEW", "5"):
        with pytest.raises(ConfigKeyError, match="unknown key SUB.NEW"):
            merge(make_cfg())


def test_new_keys_are_taken_on_every_path_where_the_section_allows_them(write: Write) -> None:
    for merge in merges(write, "NEW", "5"):
        cfg = make_cfg()
        cfg.set_new_allowed(True)
        for target in (cfg, cfg.clone()):
            merge(target)
            assert target.SUB.NEW == 5
            target.merge_from_list(["SUB.LATER", "7"])  # the permission outlives a merge
            assert target.SUB.LATER == 7


def test_new_sections_are_taken_too(write: Write) -> None:
    cfg = CfgNode({"A": 1}, new_allowed=True)
    cfg.merge_from_list(["X.Y", "1", "X.Z", "[a]"])
    cfg.merge_from_file(write("c.yml", "X: {W: {V: 1.5}}\n"))
    assert cfg.X == {"Y": 1, "Z": ["a"], "W": {"V": 1.5}}
    with pytest.raises(ConfigTypeError, match="N.M: N is a value, not a section"):
        cfg.merge_from_list(["N", "1", "N.M", "2"])


def test_deprecated_keys_are_skipped_and_renamed_ones_refused() -> None:
    cfg = make_cfg()
    cfg.register_deprecated_key("SUB.OLD")
    cfg.register_renamed_key("SUB.BEFORE", "SUB.KEY")
    cfg.merge_from_list(["SUB.OLD", "3"])
    assert "OLD" not in cfg.SUB
    with pytest.raises(ConfigKeyError, match=r"SUB.BEFORE was renamed to SUB.KEY.* \(command line\)"):
        cfg.merge_from_list(["SUB.BEFORE", "3"])


def test_pairs_and_key_equals_value_mix_and_the_last_wins() -> None:
    cfg = make_cfg()
    cfg.merge_from_list(["A", "1", "SUB.KEY=2", "A=3", "SUB.NAMES", "('a=b',)"])
    assert (cfg.A, cfg.SUB.KEY, cfg.SUB.NAMES) == (3, 2, ("a=b",))


def test_another_config_is_merged_with_the_same_types() -> None:
    cfg = make_cfg()
    cfg.merge_from_other_cfg({"SUB": {"NAMES": ["p", "q"]}})
    assert cfg.SUB.NAMES == ("p", "q")
    with pytest.raises(ConfigTypeError, match=r"A takes an int, not 1.5, a float \(another config\)"):
        cfg.merge_from_other_cfg(CfgNode({"A": 1.5}))


@pytest.mark.parametrize(
    "value",
    [
        *("", "123", "0123", "1e-3", "None", "null", "~", "true", "yes", "(1,)", "[x]", "a: b", "# c", "'q'", '"q"'),
        *(
            "${HOME}",
            "$${X}",
            "行人",
            "two\nlines",
            " blank ",
            "1_000",
            "nan",
            ".inf",
            "-",
            "@x",
            "C:\\data",
            "=",
            "<<",
        ),
        *(1e-7, 0.1, 1e20, -3.0, 10**20, True, None, [], (), [1, 2.5], ("a", "1", "None"), [["x", 1], []]),
    ],
)
def test_a_dumped_value_is_read_back_the_same(value: Any, tmp_path: Path) -> None:
    cfg = CfgNode({"KEY": value, "ANY": value, "SUB": {"LIST": [value], "ANY": None}})
    cfg.SUB.ANY = value
    (tmp_path / "c.yml").write_text(cfg.dump(), encoding="utf-8")
    other = CfgNode({"KEY": value, "ANY": None, "SUB": {"LIST": [], "ANY": None}})
    other.merge_from_file(tmp_path / "c.yml")

    def plain(item: Any) -> Any:
        return [plain(inner) for inner in item] if isinstance(item, (list, tuple)) else item

    assert (type(other.KEY), other.KEY) == (type(value), value)
    for got in (other.ANY, other.SUB.LIST[0], other.SUB.ANY):
        assert plain(got) == plain(value)
        assert isinstance(value, tuple) or type(got) is type(value)


def test_the_dumped_defaults_are_read_back_the_same(tmp_path: Path) -> None:
    cfg = get_cfg()
    cfg.merge_from_list(["SOLVER.MAX_ITER=5", "SOLVER.STEPS_ITERS=[1,2]", "OUTPUT_DIR='007'", "MODEL.HEADS.SCALE=0.5"])
    cfg.COMPUTED_SOMETHING = 3
    (tmp_path / "config.yaml").write_text(cfg.dump(), encoding="utf-8")
    other = get_cfg()
    other.merge_from_file(tmp_path / "config.yaml")
    del cfg["COMPUTED_SOMETHING"]
    assert other == cfg
    assert other.dump() == cfg.dump()
