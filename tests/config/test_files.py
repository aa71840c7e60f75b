"""CF-02, CF-05, CF-06: what is in one file, and files that build on others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastreid_lite.config import CfgNode, ConfigKeyError, ConfigTypeError, ConfigValueError

Write = Callable[[str, str], Path]
ROOT = Path(__file__).resolve().parents[2]


def make_cfg() -> CfgNode:
    return CfgNode({"A": 0, "B": 0, "C": 0, "NAME": "", "SOLVER": {"BASE_LR": 0.1, "MAX": 1, "STEPS": [1]}})


def merged(path: Path) -> CfgNode:
    cfg = make_cfg()
    cfg.merge_from_file(path)
    return cfg


def test_a_section_written_twice_is_refused_with_both_lines(write: Write) -> None:
    path = write("c.yml", "SOLVER: {BASE_LR: 0.1}\nA: 1\nSOLVER:\n  MAX: 5\n")
    with pytest.raises(ConfigKeyError, match="SOLVER is given twice in one section, in lines 1 and 3 of c.yml"):
        merged(path)


def test_a_key_written_twice_is_refused_with_both_lines(write: Write) -> None:
    path = write("c.yml", "SOLVER:\n  MAX: 5\n  BASE_LR: 1\n  MAX: 6\n")
    with pytest.raises(ConfigKeyError, match="MAX is given twice in one section, in lines 2 and 4 of c.yml"):
        merged(path)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "null\n", "{}\n"])
def test_an_empty_file_changes_nothing(text: str, write: Write) -> None:
    assert merged(write("c.yml", text)) == make_cfg()


@pytest.mark.parametrize(("text", "kind"), [("- A: 1\n", "a list"), ("word\n", "one word"), ("3\n", "one word")])
def test_a_file_without_keys_is_refused(text: str, kind: str, write: Write) -> None:
    with pytest.raises(ConfigTypeError, match=rf"holds KEY: VALUE lines, this one holds {kind} \(c.yml, line 1\)"):
        merged(write("c.yml", text))


@pytest.mark.parametrize("text", ["A: [1\n", "A: 1\n\tB: 2\n", 'NAME: "C:\\q"\n', "A: 1\n---\nB: 2\n", "A: 1\n B: 2\n"])
def test_what_is_not_yaml_is_refused_in_one_line_with_file_and_line(text: str, write: Write) -> None:
    with pytest.raises(ConfigValueError, match=r"^not valid YAML: .* \(c.yml, line \d\)$"):
        merged(write("c.yml", text))


def test_nesting_without_end_is_refused(write: Write) -> None:
    with pytest.raises(ConfigValueError, match=r"not valid YAML: nested too deeply \(c.yml\)"):
        merged(write("c.yml", "A: " + "[" * 700))


def test_a_control_character_is_refused(write: Write) -> None:
    with pytest.raises(ConfigValueError, match=r"not valid YAML: .*c.yml"):
        merged(write("c.yml", "A: 1\x07\n"))


def test_a_key_that_is_not_a_word_is_refused(write: Write) -> None:
    with pytest.raises(ConfigKeyError, match=r"a key must be one word \(c.yml, line 1\)"):
        merged(write("c.yml", "[A, B]: 1\n"))


def test_an_unknown_key_is_refused_with_the_nearest_name_file_and_line(write: Write) -> None:
    with pytest.raises(
        ConfigKeyError, match=r"unknown key SOLVER.BASE_RL \(c.yml, line 3\); did you mean SOLVER.BASE_LR"
    ):
        merged(write("c.yml", "A: 1\nSOLVER:\n  BASE_RL: 0.1\n"))
    with pytest.raises(ConfigKeyError, match=r"unknown key BASE_LR \(c.yml, line 1\); did you mean SOLVER.BASE_LR"):
        merged(write("c.yml", "BASE_LR: 0.1\n"))
    with pytest.raises(ConfigKeyError, match=r"unknown key SOLVR.MAX \(c.yml, line 1\); did you mean SOLVER.MAX"):
        merged(write("c.yml", "SOLVR: {MAX: 1}\n"))
    with pytest.raises(ConfigKeyError, match=r"unknown key ZZZZZZ \(c.yml, line 1\)$"):
        merged(write("c.yml", "ZZZZZZ: 1\n"))


def test_a_dotted_key_in_a_file_is_refused_with_the_form_expected(write: Write) -> None:
    with pytest.raises(
        ConfigKeyError, match=r"SOLVER.MAX is written as MAX below the section SOLVER \(c.yml, line 1\)"
    ):
        merged(write("c.yml", "SOLVER.MAX: 5\n"))


def test_a_section_where_a_value_belongs_is_refused(write: Write) -> None:
    with pytest.raises(ConfigTypeError, match=r"A takes an int, not a section \(c.yml, line 2\)"):
        merged(write("c.yml", "A:\n  B: 1\n"))


def test_a_refused_file_changes_nothing(write: Write) -> None:
    cfg = make_cfg()
    with pytest.raises(ConfigKeyError, match="unknown key"):
        cfg.merge_from_file(write("c.yml", "A: 1\nNOPE: 2\n"))
    assert cfg == make_cfg()


def test_anchors_and_merge_keys_work(write: Write) -> None:
    text = "A: &n 7\nB: *n\nSOLVER:\n  <<: {MAX: 3, BASE_LR: 0.5}\n  BASE_LR: 0.2\n"
    cfg = merged(write("c.yml", text))
    assert (cfg.A, cfg.B, cfg.SOLVER.MAX, cfg.SOLVER.BASE_LR) == (7, 7, 3, 0.2)
    with pytest.raises(ConfigTypeError, match=r"<< takes a section or a list of sections \(c.yml, line 1\)"):
        merged(write("c.yml", "SOLVER: {<<: 3}\n"))


def test_an_alias_that_contains_itself_is_refused(write: Write) -> None:
    with pytest.raises(ConfigValueError, match=r"a YAML alias contains itself \(c.yml, line 1\)"):
        merged(write("c.yml", "SOLVER: {STEPS: &a [*a]}\n"))


def test_a_file_that_cannot_be_read_is_named(write: Write, tmp_path: Path) -> None:
    write("there.yml", "")
    with pytest.raises(ConfigValueError, match="cannot read the config file nope.yml: No such file"):
        merged(tmp_path / "nope.yml")
    with pytest.raises(ConfigValueError, match="cannot read the config file .*: Is a directory"):
        merged(tmp_path)
    (tmp_path / "latin.yml").write_bytes(b"NAME: \xe9\n")
    with pytest.raises(ConfigValueError, match=r"the config file latin.yml is not UTF-8 text \(byte 6\)"):
        merged(tmp_path / "latin.yml")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_bytes(b"\xef\xbb\xbfA: 5\r\n")
    assert merged(tmp_path / "c.yml").A == 5


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.mkdir [canary]", "!!python/name:os.system ''", "!include x.yml", "!!binary aGk="]
)
def test_a_tag_that_would_construct_something_is_refused_also_in_a_base(tag: str, write: Write, tmp_path: Path) -> None:
    base = write("base.yml", f"A: {tag}\n")
    top = write("top.yml", "_BASE_: base.yml\n")
    for path in (base, top):
        with pytest.raises(ConfigValueError, match=r"the YAML tag \S+ is not allowed \(base.yml, line 1\)"):
            merged(path)
    assert not (tmp_path / "canary").exists()


def test_files_are_utf_8_whatever_the_locale(write: Write, tmp_path: Path) -> None:
    write("c.yml", "# 中文注释\nNAME: 行人\n")
    code = (
        "from fastreid_lite.config import CfgNode; c = CfgNode({'NAME': ''}); c.merge_from_file('c.yml');"
        "open('out.yml', 'w', encoding='utf-8').write(c.dump())"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path)
    assert "行人" in (tmp_path / "out.yml").read_text(encoding="utf-8")
    cfg = CfgNode({"NAME": ""})
    cfg.merge_from_file(tmp_path / "out.yml")
    assert cfg.NAME == "行人"


def test_bases_are_found_from_the_file_that_names_them(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("x/base.yml", "A: 1\nB: 1\nC: 1\n")
    write("x/y/middle.yml", "_BASE_: ../base.yml\nB: 2\nC: 2\n")
    top = write("z/top.yml", "_BASE_: ../x/y/middle.yml\nC: 3\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    cfg = merged(top)
    assert (cfg.A, cfg.B, cfg.C) == (1, 2, 3)


def test_of_a_list_of_bases_the_later_wins(write: Write) -> None:
    write("one.yml", "A: 1\nB: 1\n")
    write("two.yml", "B: 2\nC: 2\n")
    cfg = merged(write("top.yml", "_BASE_: [one.yml, two.yml]\n"))
    assert (cfg.A, cfg.B, cfg.C) == (1, 2, 2)


def test_in_a_diamond_the_shared_base_undoes_nothing(write: Write) -> None:
    write("base.yml", "A: 1\nB: 1\nC: 1\n")
    write("left.yml", "_BASE_: base.yml\nA: 2\n")
    write("right.yml", "_BASE_: base.yml\nB: 3\n")
    cfg = merged(write("top.yml", "_BASE_: [left.yml, right.yml]\nC: 4\n"))
    assert (cfg.A, cfg.B, cfg.C) == (2, 3, 4)


def test_a_circle_of_bases_is_refused_with_the_chain(write: Write) -> None:
    a = write("a.yml", "_BASE_: sub/b.yml\n")
    write("sub/b.yml", "_BASE_: ../a.yml\n")
    with pytest.raises(ConfigValueError, match="go in a circle: a.yml -> sub/b.yml -> sub/../a.yml|-> a.yml$"):
        merged(a)
    with pytest.raises(ConfigValueError, match="go in a circle: me.yml -> me.yml"):
        merged(write("me.yml", "_BASE_: me.yml\n"))


def test_a_missing_base_is_refused_with_both_files(write: Write) -> None:
    with pytest.raises(ConfigValueError, match=r"_BASE_ names a file that is not there: b.yml \(top.yml, line 2\)"):
        merged(write("top.yml", "A: 1\n_BASE_: b.yml\n"))
    with pytest.raises(ConfigValueError, match=r"a file that is not there: .*C:.* \(top.yml, line 1\)"):
        merged(write("top.yml", "_BASE_: C:\\configs\\b.yml\n"))


@pytest.mark.parametrize("value", ["", "null", "{A: 1}", "[[b.yml]]", "''"])
def test_a_base_that_is_no_path_is_refused(value: str, write: Write) -> None:
    with pytest.raises(ConfigTypeError, match=r"_BASE_ takes a path or a list of paths \(top.yml, line 1\)"):
        merged(write("top.yml", f"_BASE_: {value}\n"))


def test_bases_from_the_home_folder_absolute_by_variable_and_from_windows(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONFIGS", str(tmp_path / "home"))
    base = write("home/sub/base.yml", "A: 9\n")
    for text in ("~/sub/base.yml", str(base), "${CONFIGS}/sub/base.yml", "..\\home\\sub\\base.yml"):
        assert merged(write("top/top.yml", f"_BASE_: {text}\n")).A == 9, text
    with pytest.raises(ConfigValueError, match="_BASE_: the environment variable NOPE in .* is not set"):
        merged(write("top/top.yml", "_BASE_: ${NOPE}/base.yml\n"))


def test_the_base_does_not_remain_in_the_config(write: Write) -> None:
    write("base.yml", "A: 1\n")
    cfg = merged(write("top.yml", "_BASE_: base.yml\n"))
    assert "_BASE_" not in cfg.dump()


def test_a_base_below_a_section_or_on_the_command_line_is_refused(write: Write) -> None:
    with pytest.raises(ConfigKeyError, match=r"_BASE_ stands at the top of a config file.* \(c.yml, line 1\)"):
        merged(write("c.yml", "SOLVER: {_BASE_: b.yml}\n"))
    with pytest.raises(ConfigKeyError, match=r"_BASE_ stands at the top of a config file.* \(command line\)"):
        make_cfg().merge_from_list(["_BASE_=b.yml"])


def test_the_readers_of_fvcore_and_yacs_are_not_offered(write: Write) -> None:
    path = write("c.yml", "A: 1\n")
    with pytest.raises(ConfigValueError, match="use merge_from_file"):
        CfgNode.load_yaml_with_base(str(path))
    with pytest.raises(ConfigValueError, match="use merge_from_file"):
        CfgNode.load_cfg("A: 1")
