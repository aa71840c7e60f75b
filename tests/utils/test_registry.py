from __future__ import annotations

import pytest

from fastreid_lite.utils.registry import Registry, lookup


class Loss: ...


class OtherLoss: ...


def make() -> Registry:
    registry = Registry("loss", "MODEL.LOSSES.NAME")
    registry.register(Loss)
    registry.register(OtherLoss, name="Other")
    return registry


def test_objects_are_found_by_the_name_they_have_or_were_given() -> None:
    registry = make()

    @registry.register()
    class Third: ...

    @registry.register(name="fourth")
    class Fourth: ...

    assert [registry.get(name) for name in ("Loss", "Other", "Third", "fourth")] == [Loss, OtherLoss, Third, Fourth]
    assert registry.names() == ["Loss", "Other", "Third", "fourth"]
    assert "Loss" in registry and "OtherLoss" not in registry
    assert len(registry) == 4
    assert list(registry)[0] == ("Loss", Loss)


def test_a_name_is_taken_once_but_the_same_object_may_come_again() -> None:
    registry = make()
    registry.register(Loss)
    with pytest.raises(KeyError, match="the loss 'Loss' is registered already, by .*Loss"):
        registry.register(OtherLoss, name="Loss")
    assert registry.get("Loss") is Loss


def test_an_unknown_name_is_told_the_nearest_and_all_others() -> None:
    with pytest.raises(
        KeyError, match=r"unknown loss 'Los' \(MODEL.LOSSES.NAME\); did you mean 'Loss'\? Known: Loss, Other"
    ):
        make().get("Los")
    with pytest.raises(KeyError, match=r"unknown loss 'xyz' \(MODEL.LOSSES.NAME\)\. Known: Loss, Other"):
        make().get("xyz")
    with pytest.raises(KeyError, match=r"unknown hook 'x'\. Known: none"):
        Registry("hook").get("x")


@pytest.mark.parametrize("value", [["Loss"], None, 3])
def test_what_is_no_name_is_unknown_too(value: object) -> None:
    with pytest.raises(KeyError, match="unknown loss .* Known: Loss, Other"):
        make().get(value)  # type: ignore[arg-type]


def test_a_closed_table_has_the_same_error() -> None:
    table = {"sgd": len, "adam": len}
    assert lookup(table, "sgd", "optimizer", "SOLVER.OPT") is len
    with pytest.raises(
        KeyError, match=r"unknown optimizer 'adm' \(SOLVER.OPT\); did you mean 'adam'\? Known: adam, sgd"
    ):
        lookup(table, "adm", "optimizer", "SOLVER.OPT")
