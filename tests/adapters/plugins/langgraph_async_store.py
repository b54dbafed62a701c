"""The tests of LangGraph's asynchronous PostgreSQL store, with ours in its place."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from recollect_rows import AsyncCursor
from recollect_stores import own_namespace, replace_fixture, replace_names

from recollect.adapters.connection import Connection
from recollect.adapters.langgraph import AsyncRecollectStore

TTL_MINUTES = 6 / 60


class Store(AsyncRecollectStore):
    """With the two things that the tests ask of theirs besides: a cursor, and a sweeper, which is the server's here."""

    def __init__(self, **options: Any) -> None:
        self._namespace = own_namespace()
        super().__init__(connection=Connection(namespace=self._namespace), **options)

    @asynccontextmanager
    async def _cursor(self) -> AsyncIterator[AsyncCursor]:
        yield AsyncCursor(self._namespace)

    async def start_ttl_sweeper(self) -> None:
        pass

    async def stop_ttl_sweeper(self) -> None:
        pass


async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with Store(ttl={"default_ttl": TTL_MINUTES, "refresh_on_read": True}) as made:
        yield made


@asynccontextmanager
async def create_vector_store(
    vector_type: str, distance_type: str, embeddings: Any, text_fields: Any = None
) -> AsyncIterator[Store]:
    index = {
        "dims": embeddings.dims,
        "embed": embeddings,
        "fields": text_fields,
        "distance_type": distance_type,
    }
    async with Store(index=index) as made:
        yield made


def conn() -> None:
    """There is no other database to clear."""


def clear_test_db(conn: None) -> None:
    pass


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    replace_fixture(fixturedef, {"store": store, "conn": conn, "clear_test_db": clear_test_db})
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    replace_names(items, {"_create_vector_store": create_vector_store})
