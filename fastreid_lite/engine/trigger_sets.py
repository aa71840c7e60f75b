"""Triggers made of others, as ``&``, ``|`` and ``~`` make them."""

from __future__ import annotations

from typing import Any

from fastreid_lite.engine.triggers import Moment, Trigger, as_trigger


class AllOf(Trigger):
    """Where all of ``triggers`` fire. Each is asked every time, so each keeps its own count.

    Args:
        triggers: at least one; anything that :func:`as_trigger` takes.
    """

    def __init__(self, *triggers: Any) -> None:
        if not triggers:
            raise ValueError(f"{type(self).__name__} needs at least one trigger")
        self.triggers = tuple(as_trigger(trigger) for trigger in triggers)
        self.reads_values = any(trigger.reads_values for trigger in self.triggers)
        self.reads_end = any(trigger.reads_end for trigger in self.triggers)

    def _answers(self, moment: Moment) -> list[bool]:
        return [trigger(moment) for trigger in self.triggers]

    def __call__(self, moment: Moment) -> bool:
        return all(self._answers(moment))

    def next_iteration(self, moment: Moment) -> float:
        return min(trigger.next_iteration(moment) for trigger in self.triggers)

    def state_dict(self) -> dict[str, Any]:
        parts = [trigger.state_dict() for trigger in self.triggers]
        return {"parts": parts} if any(parts) else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for trigger, part in zip(self.triggers, state["parts"], strict=True):
            trigger.load_state_dict(part)


class AnyOf(AllOf):
    """Where any of ``triggers`` fires."""

    def __call__(self, moment: Moment) -> bool:
        return any(self._answers(moment))


class Not(AllOf):
    """Where ``trigger`` does not fire."""

    def __init__(self, trigger: Any) -> None:
        super().__init__(trigger)

    def __call__(self, moment: Moment) -> bool:
        return not self.triggers[0](moment)

    def next_iteration(self, moment: Moment) -> float:
        return moment.iteration + 1
