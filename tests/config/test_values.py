"""CF-01: what each way of writing a value gives, from a file and from the command line alike."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastreid_lite.config import CfgNode, ConfigError, ConfigTypeError, ConfigValueError

Write = Callable[[str, str], Path]


def make_cfg() -> CfgNode:
    return CfgNode(
        {
            "LR": 0.1,
            "N": 3,
            "ON": False,
            "NAME": "a",
            "NAMES": ("a", "b"),
            "LIST": ["a"],
            "SIZE": [256, 128],
            "PAIR": (1.0, 2.0),
            "ANY": None,
            "ANYS": [],
            "SUB": {"KEY": 1},
        }
    )


def from_list(key: str, text: str, write: Write) -> Any:
    cfg = make_cfg()
    cfg.merge_from_list([key, text])
    return cfg[key]


def from_file(key: str, text: str, write: Write) -> Any:
    cfg = make_cfg()
    cfg.merge_from_file(write("c.yml", f"{key}: {text}\n"))
    return cfg[key]


PATHS = pytest.mark.parametrize("merged", [from_list, from_file])


@PATHS
@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("LR", "1e-4", 1e-4),
        ("LR", "1", 1.0),
        ("LR", "-1e-3", -1e-3),
        ("LR", ".5", 0.5),
        ("LR", "1.", 1.0),
        ("LR", "2E3", 2000.0),
        ("N", "5", 5),
        ("N", "-1", -1),
        ("N", "1_000", 1000),
        ("ON", "True", True),
        ("ON", "true", True),
        ("ON", "off", False),
        ("NAME", "'123'", "123"),
        ("NAME", "0123", "0123"),
        ("NAME", "1e-3", "1e-3"),
        ("NAME", "no", "no"),
        ("NAME", "'None'", "None"),
        ("NAME", "''", ""),
        ("NAME", "50x", "50x"),
        ("NAMES", "('x',)", ("x",)),
        ("NAMES", "['x','y']", ("x", "y")),
        ("NAMES", "[x, y]", ("x", "y")),
        ("NAMES", "()", ()),
        ("NAMES", "['1', '02']", ("1", "02")),
        ("LIST", "('x', 'y')", ["x", "y"]),
        ("SIZE", "(1,2)", [1, 2]),
        ("SIZE", "[1, 2]", [1, 2]),
        ("SIZE", "40,90", [40, 90]),
        ("PAIR", "[1, 2.5]", (1.0, 2.5)),
        ("ANY", "1e-3", 1e-3),
        ("ANY", "7", 7),
        ("ANY", "None", None),
        ("ANY", "true", True),
        ("ANY", "word", "word"),
        ("ANY", "(1, 'x')", (1, "x")),
        ("ANYS", "[1, a, [2.5]]", [1, "a", [2.5]]),
    ],
)
def test_a_value_is_read_as_the_type_of_its_key_asks(
    merged: Any, key: str, text: str, value: Any, write: Write
) -> None:
    got = merged(key, text, write)
    assert got == value
    assert type(got) is type(value)
    if isinstance(value, (list, tuple)):
        assert [type(item) for item in got] == [type(item) for item in value]


@PATHS
@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("LR", "abc", "LR takes a float, not 'abc', a str"),
        ("LR", "True", "LR takes a float, not True, a bool"),
        ("LR", "[1]", r"LR takes a float, not .*1.*, a list"),
        ("LR", "None", "LR takes a float, not None"),
        ("N", "2.0", "N takes an int, not 2.0, a float"),
        ("N", "1e3", "N takes an int, not 1e3, a float"),
        ("N", "True", "N takes an int, not True, a bool"),
        ("N", "012", "N takes an int, not '?012'?"),
        ("N", "0x10", "N takes an int, not '0x10', a str"),
        ("ON", "1", "ON takes a bool, not 1, an int.*; write True or False"),
        ("NAME", "None", "NAME takes a str, not None .*; for no text write ''"),
        ("NAMES", "x", r"NAMES takes a tuple of strs, not 'x', a str .*; write \[x\]"),
        ("NAMES", "('x')", r"NAMES takes a tuple of strs, not .*; write \('x',\) or \['x'\]"),
        ("NAMES", "'10'", r"NAMES takes a tuple of strs, not .*10"),
        ("NAMES", "[[x]]", r"NAMES\[0\] takes a str, not \['x'\], a list"),
        ("SIZE", "40", r"SIZE takes a list of ints, not 40, an int .*; write \[40\]"),
        ("SIZE", "[1, x]", r"SIZE\[1\] takes an int, not 'x', a str"),
        ("SIZE", "[1.5, 2]", r"SIZE\[0\] takes an int, not 1.5, a float"),
        ("SIZE", "None", "SIZE takes a list of ints, not None"),
        ("SUB", "1", "SUB is a section: it takes keys, not 1, an int"),
        ("SUB", "null", "SUB is a section: it takes keys, not None"),
    ],
)
def test_another_type_is_refused_with_key_value_both_types_and_place(
    merged: Any, key: str, text: str, message: str, write: Write
) -> None:
    with pytest.raises(ConfigTypeError, match=message) as error:
        merged(key, text, write)
    assert ("(c.yml, line 1)" if merged is from_file else "(command line)") in str(error.value)
    assert "\n" not in str(error.value)


@PATHS
@pytest.mark.parametrize("text", ["nan", ".nan", "inf", "-.inf", "-inf", "1e999", "9" * 400])
def test_a_number_that_is_not_finite_is_refused(merged: Any, text: str, write: Write) -> None:
    with pytest.raises(ConfigValueError, match="LR takes a finite number, not"):
        merged("LR", text, write)
    with pytest.raises(ConfigValueError, match=r"PAIR\[1\] takes a finite number, not"):
        merged("PAIR", f"[1, {text}]", write)


def test_a_key_whose_default_is_infinite_takes_infinities() -> None:
    cfg = CfgNode({"LIMIT": float("inf")})
    cfg.merge_from_list(["LIMIT", "-.inf"])
    assert math.isinf(cfg.LIMIT) and cfg.LIMIT < 0


def test_quoted_numbers_in_a_file_stay_text_for_text_keys_and_are_numbers_for_number_keys(write: Write) -> None:
    assert from_file("NAME", '"10"', write) == "10"
    assert from_file("LR", "'0.2'", write) == 0.2
    assert from_file("N", "'4'", write) == 4
    assert from_file("ANY", "'7'", write) == "7"


def test_digits_on_the_command_line_are_text_for_text_keys(write: Write) -> None:
    assert from_list("NAME", "123", write) == "123"
    assert from_list("NAME", "", write) == ""
    assert from_list("NAME", "'C:\\data'", write) == "C:\\data"


def test_a_key_without_a_value_in_a_file_is_refused(write: Write) -> None:
    with pytest.raises(ConfigTypeError, match=r"LR takes a float, not an empty value \(c.yml, line 1\)"):
        from_file("LR", "", write)


def test_a_section_with_nothing_below_it_changes_nothing(write: Write) -> None:
    assert from_file("SUB", "", write) == {"KEY": 1}


def test_python_values_are_taken_as_they_are() -> None:
    cfg = make_cfg()
    cfg.merge_from_list(["LR", 2, "N", 7, "NAMES", ["x"]])
    assert (cfg.LR, type(cfg.LR), cfg.N, cfg.NAMES) == (2.0, float, 7, ("x",))
    with pytest.raises(ConfigTypeError, match="NAME takes a str, not 123, an int"):
        cfg.merge_from_list(["NAME", 123])
    with pytest.raises(ConfigTypeError, match="ANY takes a value, not <object"):
        cfg.merge_from_list(["ANY", object()])
    with pytest.raises(ConfigValueError, match="LR takes a finite number"):
        cfg.merge_from_list(["LR", float("nan")])


def test_the_type_of_a_key_is_that_of_its_default_after_any_merge() -> None:
    cfg = make_cfg()
    cfg.merge_from_list(["LR", "1", "NAMES", "()"])
    cfg.NAMES = ()
    cfg.merge_from_list(["LR", "0.5", "NAMES", "[1, x]"])
    assert cfg.LR == 0.5
    assert cfg.NAMES == ("1", "x")


def test_environment_variables_in_braces_are_replaced(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_NAME", "seven")
    monkeypatch.setenv("RUN_SIZE", "[3, 4]")
    for merged in (from_list, from_file):
        assert merged("NAME", "${RUN_NAME}/x", write) == "seven/x"
        assert merged("NAME", "$RUN_NAME", write) == "$RUN_NAME"
        assert merged("NAME", "$${RUN_NAME}", write) == "${RUN_NAME}"
        assert merged("SIZE", "${RUN_SIZE}", write) == [3, 4]
        assert merged("LIST", "['${RUN_NAME}', b]", write) == ["seven", "b"]


def test_an_environment_variable_that_is_not_set_is_an_error(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUN_NAME", raising=False)
    with pytest.raises(ConfigValueError, match=r"NAME: the environment variable RUN_NAME in .* is not set \(c.yml"):
        from_file("NAME", "${RUN_NAME}/x", write)
    with pytest.raises(ConfigValueError, match=r"NAME: in '\$\{RUN' write \$\{NAME\}"):
        from_list("NAME", "${RUN", write)


def test_every_error_is_one_kind_of_error_and_a_builtin_one() -> None:
    cfg = make_cfg()
    for tokens, builtin in ((["NOPE", "1"], KeyError), (["LR", "x"], TypeError), (["LR", "nan"], ValueError)):
        with pytest.raises(ConfigError) as error:
            cfg.merge_from_list(tokens)
        assert isinstance(error.value, builtin)
        assert not str(error.value).startswith(("'", '"'))


def test_a_value_that_aliases_blow_up_is_cut_in_the_message(tmp_path: Path) -> None:
    levels = ", ".join(f"&a{n + 1} [*a{n}, *a{n}]" for n in range(40))
    path = tmp_path / "c.yml"
    path.write_text(f"LR: [&a0 [x, x], {levels}]\n")
    with pytest.raises(ConfigTypeError, match="LR takes a float") as error:
        make_cfg().merge_from_file(path)
    assert len(str(error.value)) < 400


def test_a_config_is_json_after_a_merge() -> None:
    cfg = make_cfg()
    cfg.merge_from_list(["ANYS", "[1, x]"])
    assert json.loads(json.dumps(cfg))["ANYS"] == [1, "x"]
