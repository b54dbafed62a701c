"""The tests of LangGraph's in-memory store, with ours in its place."""

import weakref
from typing import Any

import pytest
from recollect_stores import own_connection, replace_names

from recollect.adapters.langgraph import RecollectStore

_made: "weakref.WeakSet[Store]" = weakref.WeakSet()


class Store(RecollectStore):
    """Made as the one in memory is, and closed after its test."""

    def __init__(self, *, index: Any = None) -> None:
        super().__init__(connection=own_connection(), index=index)
        _made.add(self)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    replace_names(items, {"InMemoryStore": Store})


def pytest_runtest_teardown() -> None:
    for store in list(_made):
        store.close()
    _made.clear()
