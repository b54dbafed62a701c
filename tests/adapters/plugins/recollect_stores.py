"""What the plugins share: connections that know no other test's items, and where the makers' fixtures give way."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from recollect.adapters.connection import Connection


def own_namespace() -> str:
    """That no other test has."""
    return f"test-{uuid4()}"


def own_connection() -> Connection:
    """To an engine of this process, in a namespace of its own."""
    return Connection(namespace=own_namespace())


def replace_fixture(fixture: Any, replacements: dict[str, Callable[..., Any]]) -> None:
    """Make a fixture of the makers' build what a function of ours does, with the same parameters."""
    if fixture.argname in replacements:
        fixture.func = replacements[fixture.argname]


def replace_names(items: list[pytest.Item], replacements: dict[str, Any]) -> None:
    """Give the makers' modules other classes and helpers under the names that they use.

    A name that none of them has would leave the makers' own in place, and prove nothing of ours.
    """
    modules = {item.module for item in items if isinstance(item, pytest.Function)}
    for name, replacement in replacements.items():
        using = [module for module in modules if hasattr(module, name)]
        assert using or not modules, f"no test of the makers uses {name} any more"
        for module in using:
            setattr(module, name, replacement)
