"""The tests of LlamaIndex's SQL chat store, and of the memory that keeps its history in one, with ours in its place."""

from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.memory import memory

from recollect.adapters.llama_index import RecollectMemoryStore

_made: list[RecollectMemoryStore] = []


def chat_store(**_: object) -> RecollectMemoryStore:
    """One that knows no other test's keys; what theirs takes is about its table."""
    store = RecollectMemoryStore(namespace=f"test-{uuid4()}")
    _made.append(store)
    return store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = {item.module for item in items if isinstance(item, pytest.Function)}
    modules: set[Any] = {memory, *tests}
    for module in modules:
        module.SQLAlchemyChatStore = chat_store


def pytest_runtest_teardown() -> None:
    while _made:
        _made.pop().close()
