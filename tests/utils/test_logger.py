from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastreid_lite.utils import logger as logger_module
from fastreid_lite.utils.logger import close_logger, setup_logger


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    level = logging.getLogger("fastreid_lite").level
    yield
    close_logger()
    logging.getLogger("fastreid_lite").setLevel(level)


def test_rank_zero_speaks_on_the_terminal_and_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setup_logger(tmp_path)
    logging.getLogger("fastreid_lite.engine").info("größer")
    captured = capsys.readouterr()
    assert captured.out.endswith("] größer\n") and captured.err == ""
    assert (tmp_path / "log.txt").read_text("utf-8").endswith("INFO fastreid_lite.engine: größer\n")


def test_other_ranks_write_a_file_of_their_own_and_say_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    setup_logger(tmp_path, rank=1)
    logging.getLogger("fastreid_lite.engine").warning("from one")
    setup_logger(rank=2)
    logging.getLogger("fastreid_lite.engine").warning("from two")
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    assert "from one" in (tmp_path / "log.txt.rank1").read_text()
    assert not (tmp_path / "log.txt").exists()


def test_setting_up_twice_writes_each_line_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    setup_logger(tmp_path / "a").info("first")
    setup_logger(tmp_path / "b").info("second")
    setup_logger(tmp_path / "b").info("third")
    assert [line[-6:].strip() for line in capsys.readouterr().out.splitlines()] == ["first", "second", "third"]
    assert len((tmp_path / "a" / "log.txt").read_text().splitlines()) == 1
    assert len((tmp_path / "b" / "log.txt").read_text().splitlines()) == 2


def test_lines_do_not_go_to_the_root_logger_as_well(caplog: pytest.LogCaptureFixture) -> None:
    setup_logger()
    logging.getLogger("fastreid_lite").warning("once")
    assert caplog.messages == []
    close_logger()
    logging.getLogger("fastreid_lite").warning("to the root again")
    assert caplog.messages == ["to the root again"]


def test_warnings_are_coloured_on_the_terminal_and_none_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "colored", lambda line, colour: f"<{colour}>{line}")
    logger = setup_logger(tmp_path)
    logger.warning("careful")
    logger.error("broken")
    logger.info("fine")
    assert [line.partition("[")[0] for line in capsys.readouterr().out.splitlines()] == ["<yellow>", "<red>", ""]
    assert "<" not in (tmp_path / "log.txt").read_text()
