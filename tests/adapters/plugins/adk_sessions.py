"""The tests of ADK's session services, with ours in the place of each."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from recollect.adapters.adk import RecollectSessionService

FACTORY = "get_session_service"

_made: list[RecollectSessionService] = []


def session_service(*_: object, **__: object) -> RecollectSessionService:
    """One that knows no other test's sessions; what the tests pass says which of theirs they want."""
    service = RecollectSessionService(namespace=f"test-{uuid4()}")
    _made.append(service)
    return service


def uses_factory(item: Any) -> bool:
    """The others are of the tables and the connections of the makers' own services."""
    return "session_service" in item.fixturenames or FACTORY in item.function.__code__.co_names


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not uses_factory(item)])
    items[:] = [item for item in items if uses_factory(item)]
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        setattr(module, FACTORY, session_service)


def pytest_runtest_teardown() -> None:
    while _made:
        asyncio.run(_made.pop().close())
