"""The size of what the model sees."""

from __future__ import annotations

from typing import Any

import pytest

from fastreid_lite.config import get_cfg
from fastreid_lite.config.input_size import crop_size, model_input_size, resize_size


@pytest.fixture
def cfg() -> Any:
    return get_cfg()


def test_without_a_crop_the_model_sees_what_was_resized(cfg: Any) -> None:
    cfg.INPUT.SIZE_TEST = [64, 32]
    assert model_input_size(cfg, "SIZE_TRAIN") == (256, 128) and model_input_size(cfg, "SIZE_TEST") == (64, 32)
    assert crop_size(cfg) is None


@pytest.mark.parametrize("resized", [[256, 128], [128], [0], []])
def test_with_a_crop_it_sees_the_crop(cfg: Any, resized: list[int]) -> None:
    cfg.INPUT.SIZE_TRAIN, cfg.INPUT.CROP.ENABLED, cfg.INPUT.CROP.SIZE = resized, True, [192, 96]
    assert model_input_size(cfg, "SIZE_TRAIN") == crop_size(cfg) == (192, 96)
    assert resize_size(cfg, "SIZE_TRAIN") == ((256, 128) if len(resized) == 2 else 128 if resized == [128] else None)


@pytest.mark.parametrize("resized", [[128], [0], []])
def test_one_number_without_a_crop_is_refused(cfg: Any, resized: list[int]) -> None:
    cfg.INPUT.SIZE_TRAIN = resized
    with pytest.raises(ValueError, match="INPUT.SIZE_TRAIN is .* which leaves images of different sizes"):
        model_input_size(cfg, "SIZE_TRAIN")


@pytest.mark.parametrize("size", [[1, 2, 3], [-1], [0, 4]])
def test_what_is_no_size_is_refused(cfg: Any, size: list[int]) -> None:
    cfg.INPUT.SIZE_TEST = size
    with pytest.raises(ValueError, match=r"INPUT.SIZE_TEST is .*, expected \[height, width\] in pixels"):
        model_input_size(cfg, "SIZE_TEST")
    cfg.INPUT.CROP.ENABLED, cfg.INPUT.CROP.SIZE = True, size
    with pytest.raises(ValueError, match=r"INPUT.CROP.SIZE is .*, expected \[height, width\] in pixels"):
        model_input_size(cfg, "SIZE_TRAIN")
