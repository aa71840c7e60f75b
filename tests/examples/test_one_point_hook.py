"""A hook that overrides one method is called at one point."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

Example = Callable[[str], ModuleType]


def test_the_hook_stands_at_its_point_and_nowhere_else(example: Example) -> None:
    table = example("one_point_hook").main(steps=20).hook_table
    assert len(table.after_backward) == 1
    assert not table.before_epoch + table.before_step + table.after_step + table.after_epoch


def test_the_shares_are_logged_and_sum_to_one(example: Example) -> None:
    trainer = example("one_point_hook").main(steps=200)
    numbers = trainer.storage.published()
    assert numbers["share_first"].value + numbers["share_second"].value == pytest.approx(1)
    losses = trainer.storage.history("loss_square")
    assert losses[-1][0] < 0.1 * losses[0][0]
