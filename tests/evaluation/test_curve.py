from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from fastreid_lite.evaluation.curve import _read, _thinned, plot_learning_curve


def write_log(path: Path, *, losses: bool = True, scores: bool = True) -> Path:
    with path.open("w", encoding="utf-8") as log:
        for step in range(0, 100, 5):
            record: dict[str, float] = {"iteration": step, "lr": 0.1}
            if losses:
                record |= {"total_loss": 5 / (step + 1), "loss_cls": 3 / (step + 1), "loss_triplet": 2 / (step + 1)}
            if scores and step % 25 == 0:
                record |= {"Market1501/mAP": step * 0.8, "Market1501/Rank-1": float("nan") if step == 0 else step * 0.9}
            log.write(json.dumps(record) + "\n")
        log.write('{"iteration": 1')
    return path


@pytest.mark.parametrize("losses, scores", [(True, True), (True, False), (False, True)])
def test_a_picture_is_written_without_pyplot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: bool, scores: bool
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    log = write_log(tmp_path / "metrics.json", losses=losses, scores=scores)
    assert plot_learning_curve(log, tmp_path / "curve.png") is True
    picture = (tmp_path / "curve.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[start : start + 4], "big") for start in (16, 20))
    assert (width, height) == (768 * (losses + scores), 504)


def test_values_are_read_by_name_and_what_is_not_finite_or_cut_off_is_left_out(tmp_path: Path) -> None:
    series = _read(write_log(tmp_path / "metrics.json"))
    assert series["Market1501/mAP"] == ([0.0, 25.0, 50.0, 75.0], [0.0, 20.0, 40.0, 60.0])
    assert series["Market1501/Rank-1"][0] == [25.0, 50.0, 75.0]


def test_long_losses_are_drawn_as_means() -> None:
    steps, values = _thinned(([float(step) for step in range(1000)], [1.0, 3.0] * 500))
    assert len(steps) == 334
    assert steps[:2] == [1.0, 4.0]
    assert sum(values) / len(values) == pytest.approx(2.0, abs=0.01)


def test_without_matplotlib_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    log = write_log(tmp_path / "metrics.json")
    with caplog.at_level(logging.INFO):
        assert plot_learning_curve(log, tmp_path / "curve.png") is False
    assert len(caplog.records) == 1
    assert "matplotlib is not installed" in caplog.text
    assert not (tmp_path / "curve.png").exists()


def test_a_log_without_losses_and_results_gives_no_picture(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "metrics.json").write_text('{"iteration": 1, "lr": 0.1}\n[]\n{"lr": 1}\n')
    with caplog.at_level(logging.INFO):
        assert plot_learning_curve(tmp_path / "metrics.json", tmp_path / "curve.png") is False
    assert "neither losses nor results" in caplog.text


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(FileNotFoundError, match="metrics.json"):
        plot_learning_curve(tmp_path / "metrics.json", tmp_path / "curve.png")
