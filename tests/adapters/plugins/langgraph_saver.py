"""The tests of LangGraph's PostgreSQL checkpointers, with ours in their place."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from recollect_stores import own_connection, replace_fixture, replace_names

from recollect.adapters.langgraph import RecollectSaver


class Saver(RecollectSaver):
    """Opened as theirs are; there is nothing to set up."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, _: str) -> AsyncIterator["Saver"]:
        with cls(connection=own_connection()) as made:
            yield made

    async def setup(self) -> None:
        pass


@contextmanager
def saver(_: str) -> Iterator[Saver]:
    with Saver(connection=own_connection()) as made:
        yield made


@asynccontextmanager
async def async_saver(_: str) -> AsyncIterator[Saver]:
    with Saver(connection=own_connection()) as made:
        yield made


def nothing() -> None:
    """There is no other database to clear."""


def clear_test_db(conn: None) -> None:
    pass


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    replace_fixture(fixturedef, {"conn": nothing, "clear_test_db": clear_test_db})
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    synchronous = [item for item in items if item.path.name == "test_sync.py"]
    replace_names(synchronous, {"_saver": saver})
    replace_names(
        [item for item in items if item not in synchronous], {"_saver": async_saver, "AsyncPostgresSaver": Saver}
    )
