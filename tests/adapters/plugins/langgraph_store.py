"""The tests of LangGraph's PostgreSQL store, with ours in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from recollect_rows import Cursor
from recollect_stores import own_namespace, replace_fixture, replace_names

from recollect.adapters.connection import Connection
from recollect.adapters.langgraph import RecollectStore

TTL_MINUTES = 6 / 60


class Store(RecollectStore):
    """With the two things that the tests ask of theirs besides: a cursor, and a sweeper, which is the server's here."""

    def __init__(self, **options: Any) -> None:
        self._namespace = own_namespace()
        super().__init__(connection=Connection(namespace=self._namespace), **options)

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        yield Cursor(self._namespace)

    def stop_ttl_sweeper(self) -> None:
        pass


def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    ttl = {"default_ttl": TTL_MINUTES, "refresh_on_read": True}
    with Store(ttl=ttl) as made:
        yield made


@contextmanager
def create_vector_store(
    vector_type: str, distance_type: str, embeddings: Any, text_fields: Any = None, enable_ttl: bool = True
) -> Iterator[Store]:
    index = {
        "dims": embeddings.dims,
        "embed": embeddings,
        "fields": text_fields,
        "distance_type": distance_type,
    }
    with Store(index=index, ttl={"default_ttl": 2, "refresh_on_read": True} if enable_ttl else None) as made:
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
