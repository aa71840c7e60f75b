"""The key tree, its defaults and the recipes, against fast-reid's."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastreid_lite.config import CfgNode, ConfigTypeError, ConfigValueError, get_cfg, load_config
from fastreid_lite.config.schema import KINDS, OPTIONS, TWINS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT.parent / "shared" / "golden" / "configs.json"
QUIRKS = {
    "MODEL.BACKBONE.STEM_POOL": "ceil",
    "MODEL.BACKBONE.NL_CHANNELS": "one",
    "SOLVER.STEPS_FROM": "warmup_end",
    "SOLVER.CLIP_GRADIENTS.SCOPE": "group",
}
OURS = {
    "MODEL.BACKBONE.STEM_POOL": "ceil",
    "MODEL.BACKBONE.NL_CHANNELS": "one",
    "SOLVER.AMP.DTYPE": "auto",
    "SOLVER.ACCUMULATE_STEPS": 1,
    "SOLVER.STEPS_FROM": "warmup_end",
    "SOLVER.MAX_ITER": None,
    "SOLVER.STEPS_ITERS": None,
    "SOLVER.DELAY_ITERS": None,
    "SOLVER.CHECKPOINT_PERIOD_ITERS": None,
    "TEST.EVAL_PERIOD_ITERS": None,
    "SOLVER.CHECKPOINT_KEEP": 0,
    "SOLVER.LOG_PERIOD_ITERS": 20,
    "SOLVER.CLIP_GRADIENTS.SCOPE": "group",
    "SOLVER.NONFINITE.POLICY": "raise",
    "SOLVER.NONFINITE.MODE": "auto",
    "DATASETS.ROOT": "",
    "DATASETS.TEST_FRACTION": 0.5,
    "DATASETS.VAL_FRACTION": 0.0,
    "DATASETS.SPLIT_SEED": 0,
    "DATASETS.SYNTHETIC.FOLDER": "",
    "DATASETS.SYNTHETIC.TRAIN_IDS": 128,
    "DATASETS.SYNTHETIC.TEST_IDS": 32,
    "DATASETS.SYNTHETIC.CAMERAS": 4,
    "DATASETS.SYNTHETIC.IMAGES_PER_CAMERA": 4,
    "DATASETS.SYNTHETIC.DISTRACTORS": 32,
    "DATASETS.SYNTHETIC.JUNK": 8,
    "DATASETS.SYNTHETIC.SIZE": [128, 64],
    "DATASETS.SYNTHETIC.SEED": 0,
    "DATALOADER.ON_BROKEN_IMAGE": "error",
    "DATALOADER.PREFETCH_FACTOR": 2,
    "TEST.EXCLUDE_SAME": ("camid",),
    "PROJECT.IMPORTS": (),
    "SEED": -1,
    "DETERMINISTIC": False,
}


def flat(cfg: CfgNode) -> dict[str, Any]:
    values = {}
    for name in cfg.key_names():
        node: Any = cfg
        for part in name.split("."):
            node = node[part]
        values[name] = node
    return values


def as_json(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    if not GOLDEN.is_file():
        pytest.skip("fast-reid's defaults are not beside this checkout")
    loaded: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return loaded


def test_the_defaults_are_fast_reids_but_for_the_device(golden: dict[str, dict[str, Any]]) -> None:
    values = as_json(flat(get_cfg()))
    expected = {**golden["defaults"], "MODEL.DEVICE": "auto"}
    assert {name: values.get(name) for name in expected} == expected
    assert {name: type(values[name]) for name in expected} == {name: type(value) for name, value in expected.items()}


def test_the_keys_beside_fast_reids_are_these(golden: dict[str, dict[str, Any]]) -> None:
    values = flat(get_cfg())
    assert {name: value for name, value in values.items() if name not in golden["defaults"]} == OURS


@pytest.mark.parametrize("recipe", ["Base-bagtricks.yml", "Market1501/bagtricks_R50.yml"])
def test_a_recipe_is_fast_reids_and_names_the_quirks_that_its_numbers_depend_on(
    recipe: str, golden: dict[str, dict[str, Any]]
) -> None:
    path = ROOT / "configs" / recipe
    values = as_json(flat(load_config(path)))
    expected = {**golden[recipe], "MODEL.DEVICE": "auto", **QUIRKS}
    assert {name: values[name] for name in expected} == expected
    base = yaml.safe_load((ROOT / "configs" / "Base-bagtricks.yml").read_text(encoding="utf-8"))
    for key, value in QUIRKS.items():
        node = base
        for part in key.split("."):
            node = node[part]
        assert node == value
    assert len(path.read_text(encoding="utf-8").splitlines()) < 30


def test_every_fast_reid_recipe_can_be_merged_as_it_is(golden: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    for values in golden.values():
        tree: dict[str, Any] = {}
        for key, value in values.items():
            *sections, leaf = key.split(".")
            node = tree
            for section in sections:
                node = node.setdefault(section, {})
            # fast-reid writes its tuples as Python does, and YAML reads them as a text
            node[leaf] = repr(tuple(value)) if key.endswith(("NAMES", "TESTS", "LOSSES.NAME")) else value
        (tmp_path / "c.yml").write_text(yaml.safe_dump(tree), encoding="utf-8")
        merged = as_json(flat(load_config(tmp_path / "c.yml")))
        assert {key: merged[key] for key in values} == values


def test_tuples_as_fast_reid_writes_them_are_tuples(tmp_path: Path) -> None:
    text = 'DATASETS:\n  NAMES: ("Market1501",)\n  TESTS: ("A", "B",)\nMODEL: {BACKBONE: {STRIDE_SIZE: "(12, 12)"}}\n'
    (tmp_path / "c.yml").write_text(text, encoding="utf-8")
    cfg = load_config(tmp_path / "c.yml")
    assert (cfg.DATASETS.NAMES, cfg.DATASETS.TESTS) == (("Market1501",), ("A", "B"))
    assert cfg.MODEL.BACKBONE.STRIDE_SIZE == (12, 12)


@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_outside_its_list_is_refused_with_the_list(key: str) -> None:
    cfg = get_cfg()
    for option in OPTIONS[key]:
        cfg.merge_from_list([key, option])
    with pytest.raises(ConfigValueError, match=rf"{key} is 'foo' \(command line\); allowed: {', '.join(OPTIONS[key])}"):
        cfg.merge_from_list([key, "foo"])


def test_the_schema_speaks_of_keys_that_exist_and_of_their_defaults() -> None:
    values = flat(get_cfg())
    assert set(OPTIONS) | set(KINDS) | {key for pair in TWINS for key in pair} <= set(values)
    for key, options in OPTIONS.items():
        assert values[key] in options


def test_keys_that_make_sense_with_a_fraction_take_one_and_counts_do_not() -> None:
    cfg = get_cfg()
    cfg.merge_from_list(["MODEL.HEADS.SCALE", "30.5", "MODEL.LOSSES.CIRCLE.GAMMA", "64"])
    assert (cfg.MODEL.HEADS.SCALE, cfg.MODEL.LOSSES.CIRCLE.GAMMA) == (30.5, 64)
    assert type(cfg.MODEL.LOSSES.CIRCLE.GAMMA) is int
    with pytest.raises(ConfigTypeError, match="SOLVER.IMS_PER_BATCH takes an int"):
        cfg.merge_from_list(["SOLVER.IMS_PER_BATCH", "1.5"])


def test_every_key_has_a_comment_above_it_or_above_the_keys_it_belongs_to() -> None:
    folder = ROOT / "fastreid_lite" / "config" / "defaults"
    for path in sorted(folder.glob("[!_]*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)):
                continue
            if isinstance(node.value, ast.Call) and not any(isinstance(arg, ast.Dict) for arg in node.value.args):
                continue  # a section that is filled below or elsewhere
            above = node.lineno - 2
            while lines[above].strip() and not lines[above].strip().startswith("#") and "def " not in lines[above]:
                above -= 1
            assert lines[above].strip().startswith("#"), f"{path.name}, line {node.lineno}: {lines[node.lineno - 1]}"


def test_nothing_of_this_package_imports_torch() -> None:
    code = (
        "import sys, fastreid_lite.config as c; [getattr(c, n) for n in c.__all__];"
        "c.load_config(None, ['SEED', '1']); assert 'torch' not in sys.modules and 'timm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_name_that_the_package_lacks_is_an_attribute_error() -> None:
    import fastreid_lite.config

    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = fastreid_lite.config.nope
