from __future__ import annotations

from fastreid_lite.engine import AtEnd, every
from fastreid_lite.engine.hooks import CallbackHook
from tests.engine.toys import CountingTrainer


def test_hooks_whose_triggers_remember_nothing_may_share_a_name() -> None:
    trainer = CountingTrainer()
    hooks = [CallbackHook(trigger=trigger, at_boundary=print) for trigger in (every(5), every(5) | AtEnd())]
    trainer.register_hooks(hooks)
    assert [hook.name for hook in trainer.hook_table.hooks] == ["CallbackHook", "CallbackHook_2"]
