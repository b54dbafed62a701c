"""The tests of LlamaIndex's chat store in memory, and of the memories that keep their history in one, with ours."""

from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.memory import chat_memory_buffer, chat_summary_memory_buffer

from recollect.adapters.llama_index import RecollectChatStore

_made: list[RecollectChatStore] = []


def chat_store() -> RecollectChatStore:
    """One that knows no other test's keys."""
    store = RecollectChatStore(namespace=f"test-{uuid4()}")
    _made.append(store)
    return store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = {item.module for item in items if isinstance(item, pytest.Function)}
    modules: set[Any] = {chat_memory_buffer, chat_summary_memory_buffer, *tests}
    for module in modules:
        module.SimpleChatStore = chat_store


def pytest_runtest_teardown() -> None:
    while _made:
        _made.pop().close()
