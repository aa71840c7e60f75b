from __future__ import annotations

import importlib
import pkgutil

import pytest

import fastreid_lite

PACKAGES = [
    "fastreid_lite",
    *(info.name for info in pkgutil.walk_packages(fastreid_lite.__path__, "fastreid_lite.") if info.ispkg),
]


def test_the_packages_of_the_library_are_found() -> None:
    assert {"fastreid_lite.engine", "fastreid_lite.engine.hooks", "fastreid_lite.storage"} <= set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_that_a_package_offers_is_there(name: str) -> None:
    package = importlib.import_module(name)
    offered = getattr(package, "__all__", [])
    assert len(offered) == len(set(offered))
    missing = [word for word in offered if not hasattr(package, word)]
    assert missing == []


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_a_package_does_not_offer_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = importlib.import_module(name).no_such_name
