"""Whole models against fast-reid's, from weights filled by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from fastreid_lite.modeling import build_model

NAMES = ["bagtricks_R50", "bagtricks_R50-ibn", "AGW_R50", "sbs_R50-ibn"]


def reference(name: str, golden: Path) -> tuple[dict[str, Any], Any]:
    return json.loads((golden / f"models/{name}.json").read_text()), np.load(golden / f"models/{name}.npz")


def build(recipe: dict[str, Any], golden: Path, make_cfg: Callable[..., Any]) -> Any:
    """The model of a reference run, with fast-reid's merged recipe as its config."""
    recipes = json.loads((golden / "configs.json").read_text())
    settings = {key: value for key, value in recipes[recipe["config"]].items() if key.startswith("MODEL.")}
    return build_model(make_cfg({**settings, **recipe["overrides"]}))


def fill_weights(model: Any, recipe: dict[str, Any], fill: ModuleType, dtype: torch.dtype) -> None:
    state = {}
    for name, shape, _, checksum in recipe["state_dict"]:
        value = fill.fill(name, shape)
        assert fill.checksum(value) == checksum, f"{name} was filled by another rule"
        state[name] = torch.from_numpy(value)
    model.load_state_dict(state)
    model.to(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_names_shapes_and_counts_are_fast_reids(name: str, golden: Path, make_cfg: Callable[..., Any]) -> None:
    recipe, _ = reference(name, golden)
    model = build(recipe, golden, make_cfg)
    found = sorted((key, list(value.shape)) for key, value in model.state_dict().items())
    assert found == sorted((key, shape) for key, shape, *_ in recipe["state_dict"])
    assert sum(parameter.numel() for parameter in model.parameters()) == recipe["parameters"]
    frozen = [key for key, parameter in model.named_parameters() if not parameter.requires_grad]
    assert frozen == recipe["not_trainable"]


def test_the_features_of_the_bag_of_tricks_are_fast_reids(
    golden: Path, fill: ModuleType, make_cfg: Callable[..., Any]
) -> None:
    recipe, numbers = reference("bagtricks_R50", golden)
    model = build(recipe, golden, make_cfg)
    fill_weights(model, recipe, fill, torch.float32)
    images = torch.from_numpy(fill.images(101, 2, 256, 128))
    with torch.no_grad():
        features = model.eval()(images).numpy()
    expected = numbers["eval_features"]
    assert np.abs(features - expected).max() <= 1e-5 * np.linalg.norm(expected, axis=1).min()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [("bagtricks_R50", torch.float32), *((name, torch.float64) for name in NAMES)]
)
def test_features_losses_and_gradients_are_fast_reids(
    name: str, dtype: torch.dtype, golden: Path, fill: ModuleType, make_cfg: Callable[..., Any]
) -> None:
    recipe, numbers = reference(name, golden)
    double = dtype == torch.float64
    model = build(recipe, golden, make_cfg)
    fill_weights(model, recipe, fill, dtype)
    evaluation, training = recipe["eval"]["images"], recipe["train"]["images"]
    with torch.no_grad():
        features = model.eval()(torch.from_numpy(fill.images(evaluation["seed"], *np.delete(evaluation["shape"], 1))))
    expected = numbers["eval_features_f64" if double else "eval_features"]
    norms = np.linalg.norm(expected, axis=1).min()
    assert np.abs(features.numpy() - expected).max() <= (1e-9 if double else 1e-5) * norms

    images = torch.from_numpy(fill.images(training["seed"], *np.delete(training["shape"], 1)))
    targets = torch.tensor(recipe["train"]["labels"])
    losses = model.train()({"images": images, "targets": targets})
    sum(losses.values()).backward()
    known = recipe["train"]["float64" if double else "float32"]
    assert set(losses) == set(known["losses"])
    for key, value in known["losses"].items():
        assert float(losses[key].detach()) == pytest.approx(value, rel=1e-8 if double else 2e-4), key
    found = {key: float(p.grad.norm()) for key, p in model.named_parameters() if p.grad is not None}
    assert set(found) == set(recipe["trainable_names"])
    references = known["grad_l2"]
    if double:
        references = dict(zip(recipe["trainable_names"], numbers["grad_l2_all_f64"], strict=True))
    for key, value in references.items():
        # A bias in front of a batch norm has no gradient but rounding.
        assert found[key] == pytest.approx(value, rel=1e-7 if double else 1e-3, abs=1e-9), key
    state = model.state_dict()
    for key, value in known["running_stats_l2_after"].items():
        assert float(state[key].norm()) == pytest.approx(value, rel=1e-8 if double else 1e-4), key
