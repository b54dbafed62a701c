"""RecollectStore: LangGraph's long-term memory, of which every other door recalls what it says."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import BaseStore, Op, Result, TTLConfig, validate_op_namespace
from langgraph.store.base.batch import AsyncBatchedBaseStore

from recollect import tasks
from recollect.adapters.connection import Connection
from recollect.adapters.langgraph.operations import Index, Translator, pages, result

_ROUTE = ("POST", "/records/batch")


class _Batches:
    """One request for a batch of operations."""

    def __init__(self, connection: Connection, user_id: str | None, index: Index | None) -> None:
        self._connection = connection
        self._user_id = user_id
        self._translator = Translator(index)

    def run(self, ops: Sequence[Op]) -> list[Result]:
        """Do operations; LangGraph may be anywhere, also on an event loop."""
        embeddings, texts = self._translator.embeddings, self._translator.to_embed(ops)
        vectors = embeddings.embed_documents(texts) if embeddings is not None and texts else []
        results: list[Result] = [None] * len(ops)
        for places, body in self._bodies(ops, dict(zip(texts, vectors, strict=True))):
            _place(ops, places, self._connection.call(*_ROUTE, json=body), results)
        return results

    async def run_async(self, ops: Sequence[Op]) -> list[Result]:
        """The same, without blocking the caller's event loop."""
        embeddings, texts = self._translator.embeddings, self._translator.to_embed(ops)
        vectors = await embeddings.aembed_documents(texts) if embeddings is not None and texts else []
        results: list[Result] = [None] * len(ops)
        for places, body in self._bodies(ops, dict(zip(texts, vectors, strict=True))):
            _place(ops, places, await self._connection.call_async(*_ROUTE, json=body), results)
        return results

    def close(self) -> None:
        self._connection.close()

    def _bodies(self, ops: Sequence[Op], vectors: dict[str, list[float]]) -> Iterator[tuple[list[int], dict[str, Any]]]:
        for op in ops:
            validate_op_namespace(op)
        asked = [self._translator.asked(op, vectors) for op in ops]
        for places in pages(ops):
            if places:
                yield places, {"user_id": self._user_id, "operations": [asked[place] for place in places]}


def _place(ops: Sequence[Op], places: Sequence[int], answered: dict[str, Any], results: list[Result]) -> None:
    for place, answer in zip(places, answered["answers"], strict=True):
        results[place] = result(ops[place], answer)


class RecollectStore(BaseStore):
    """LangGraph's store on the server at `url`, or without one on the memory of this machine; synchronous and async.

    With `user_id`, the store is that user's: it has no items of others, and is forgotten with the user.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        connection: Connection | None = None,
        user_id: str | None = None,
        index: Index | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._batches = _Batches(connection or Connection(url, key), user_id, index)
        self.index_config = index
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in one request; reads see what was there before the writes."""
        return self._batches.run(list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, without blocking the event loop."""
        return await self._batches.run_async(list(ops))

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRecollectStore(AsyncBatchedBaseStore):
    """The same for programs that are asynchronous throughout: what is awaited at the same time is one request.

    Make it on the event loop that uses it.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        connection: Connection | None = None,
        user_id: str | None = None,
        index: Index | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self._batches = _Batches(connection or Connection(url, key), user_id, index)
        self.index_config = index
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """From another thread: do operations in one request."""
        try:
            blocks = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            blocks = False
        if blocks:
            raise asyncio.InvalidStateError(
                "This would block the event loop that the store works on: await abatch(...)"
            )
        return self._batches.run(list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in one request; reads see what was there before the writes."""
        return await self._batches.run_async(list(ops))

    async def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        await tasks.in_thread(self._batches.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
