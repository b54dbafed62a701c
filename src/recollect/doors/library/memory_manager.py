"""MemoryManager: the async library of the memory-manager contract."""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import TypeAdapter

from recollect import checks, models, origin
from recollect.doors.changes import ChangesPage
from recollect.doors.library import new_items, spans
from recollect.doors.library.long_term import LongTermMethods
from recollect.doors.library.new_items import ROLES, NewDocument, NewMessage
from recollect.doors.library.opened import storage_failures
from recollect.doors.lineage import ItemLineage
from recollect.doors.recalls import Asked, Recollection
from recollect.errors import Invalid
from recollect.flows.feed import DEFAULT_LIMIT
from recollect.flows.forgetting.receipts import Receipt
from recollect.flows.kinds.target import SESSION, USER, Target
from recollect.flows.remember import Turn
from recollect.identifiers import uuid7
from recollect.memory import documents, sessions
from recollect.quotas import ANONYMOUS
from recollect.steps import in_steps
from recollect.trust import Trust


class MemoryManager(LongTermMethods):
    """
    Async memory abstraction layer for conversation history and semantic search.

    With no argument it opens the memory that the environment names, or an embedded one, on first use.
    Close it with `await memory.close()`, or use it as an async context manager.
    """

    async def create_session(self, user_id: str, metadata: dict[str, Any] | None = None) -> UUID:
        """Create a new session (optional; sessions auto-create on first message)."""
        async with self._call("create_session") as span:
            spans.annotate(span, {"user_id": str(user_id), "metadata_keys": spans.keys(metadata)})
            checks.identifier(user_id, "user_id")
            encoded = checks.metadata(metadata)
            session_id = uuid7()
            engine = await self._engine()
            await engine.remember.session(self._scope(engine), str(session_id), user_id, metadata=encoded)
            return session_id

    async def store_message(
        self,
        session_id: UUID,
        role: str,
        content: str,
        metadata: dict[str, Any] | None = None,
        *,
        speaker: str | None = None,
        at: datetime | None = None,
        id: UUID | None = None,  # noqa: A002
        user_id: str | None = None,
    ) -> UUID:
        """Store a message in a session (auto-creates session if doesn't exist).

        `speaker` is the name of who said it, `at` when it was said (now by default). With an `id` of your own you can
        repeat the call: the message is stored once. `user_id` is whose session it is if it is new.
        """
        async with self._call("store_message") as span:
            if span.is_recording():
                span.set_attributes(
                    {
                        "session_id": str(session_id),
                        "role": str(role),
                        "content_length": len(content) if isinstance(content, str) else 0,
                        "metadata_keys": spans.keys(metadata),
                        "has_metadata": metadata is not None,
                    }
                )
            given = NewMessage(role=role, content=content, metadata=metadata, speaker=speaker, at=at, id=id)
            turn = Turn(_session_key(session_id), (new_items.message(given),), owner_if_new=_new_owner(user_id))
            engine = await self._engine()
            (message,) = await engine.remember.turn(self._scope(engine), turn)
            return message.id

    async def store_messages(
        self, session_id: UUID, messages: Sequence[NewMessage], *, user_id: str | None = None
    ) -> list[UUID]:
        """Store messages in a session, next to each other and in this order, all or none; returns their ids."""
        async with self._call("store_messages") as span:
            spans.annotate(span, {"session_id": str(session_id)})
            new = tuple(await in_steps(new_items.messages(messages)))
            spans.annotate(span, {"message_count": len(new)})
            turn = Turn(_session_key(session_id), new, owner_if_new=_new_owner(user_id))
            engine = await self._engine()
            return [message.id for message in await engine.remember.turn(self._scope(engine), turn)]

    async def get_conversation_history(
        self, session_id: UUID, limit: int = 100, *, before: UUID | None = None, as_of: datetime | None = None
    ) -> list[models.Message]:
        """Retrieve conversation history for a session (most recent N messages), oldest first.

        `before` is the id of a message: the most recent N messages before that one. Page through a long history with
        the id of the oldest message you have. `as_of` is a time in the past: the history as it was then.
        """
        async with self._call("get_conversation_history") as span:
            spans.annotate(span, {"session_id": str(session_id), "limit": limit})
            key = _session_key(session_id)
            checks.optional_uuid(before, "before")
            engine = await self._engine()
            messages = await engine.conversations.messages(self._scope(engine), key, limit, before, as_of)
            spans.annotate(span, {"result_count": len(messages)})
            return _as_messages(
                [
                    {
                        "id": message.id,
                        "session_id": session_id,
                        # Other doors know more roles; here they are things that the system says.
                        "role": message.role if message.role in ROLES else "system",
                        "content": message.content,
                        "created_at": message.created_at,
                        "metadata_": checks.as_object(message.metadata) or {},
                        "speaker": message.speaker,
                    }
                    for message in messages
                ]
            )

    async def get_session(self, session_id: UUID, *, as_of: datetime | None = None) -> models.Session:
        """A session without its messages; raises NotFound if there is none, or was none at the time `as_of`."""
        async with self._call("get_session") as span:
            spans.annotate(span, {"session_id": str(session_id)})
            key = _session_key(session_id)
            engine = await self._engine()
            return _session(await engine.conversations.get(self._scope(engine), key, as_of))

    async def list_sessions(
        self,
        user_id: str | None = None,
        *,
        limit: int = 100,
        after: UUID | None = None,
        as_of: datetime | None = None,
    ) -> list[models.Session]:
        """Sessions of a user, or of all users, last active first; with `as_of`, as they were at that time.

        `after` is the id of the last session of the previous page. Sessions of other doors whose ids are not UUIDs are
        left out: this contract could not name them.
        """
        async with self._call("list_sessions") as span:
            spans.annotate(span, {"limit": limit})
            checks.optional_uuid(after, "after")
            engine = await self._engine()
            found = await engine.conversations.page(
                self._scope(engine), user_id, limit, None if after is None else str(after), as_of
            )
            spans.annotate(span, {"result_count": len(found)})
            return list(map(_session, found))

    async def store_document(
        self,
        content: str,
        metadata: dict[str, Any] | None = None,
        embedding: list[float] | None = None,
        *,
        at: datetime | None = None,
        id: UUID | None = None,  # noqa: A002
    ) -> UUID:
        """Store a document with optional vector embedding.

        `at` is when it was written (now by default). With an `id` of your own you can repeat the call: the document is
        stored once.
        """
        async with self._call("store_document") as span:
            if span.is_recording():
                span.set_attributes(
                    {
                        "content_length": len(content) if isinstance(content, str) else 0,
                        "has_embedding": embedding is not None,
                        "metadata_keys": spans.keys(metadata),
                    }
                )
            given = NewDocument(content=content, metadata=metadata, embedding=embedding, at=at, id=id)
            new = new_items.document(given)
            engine = await self._engine()
            return await engine.remember.document(
                self._scope(engine), new.content, new.embedding, new.metadata, new.at, new.id
            )

    async def store_documents(self, documents: Sequence[NewDocument]) -> list[UUID]:
        """Store documents, all or none; returns their ids in the same order."""
        async with self._call("store_documents") as span:
            new = await in_steps(new_items.many_documents(documents))
            spans.annotate(span, {"document_count": len(new)})
            engine = await self._engine()
            return await engine.remember.documents(self._scope(engine), new)

    async def semantic_search(
        self, query_embedding: list[float], top_k: int = 10, metadata_filters: dict[str, Any] | None = None
    ) -> list[models.Document]:
        """Perform semantic search using vector similarity (cosine distance)."""
        async with self._call("semantic_search") as span:
            spans.annotate(span, {"top_k": top_k, "filter_count": len(spans.keys(metadata_filters))})
            checks.positive(top_k, "top_k")
            vector = checks.query_embedding(query_embedding, "query_embedding")
            filters = checks.metadata_filter(metadata_filters, "metadata_filters")
            engine = await self._engine()
            started = time.perf_counter()
            async with engine.database.reading(self._scope(engine)) as db:
                found = await engine.capabilities.documents.nearest(db, vector, top_k, filters)
            elapsed = (time.perf_counter() - started) * 1000
            spans.annotate(span, {"result_count": len(found), "query_time_ms": elapsed})
            return _documents(found)

    async def temporal_query(
        self, start_date: datetime, end_date: datetime, metadata_filters: dict[str, Any] | None = None
    ) -> list[models.Document]:
        """Query documents by date range and optional metadata filters, newest first."""
        async with self._call("temporal_query") as span:
            spans.annotate(
                span,
                {
                    "start_date": spans.moment(start_date),
                    "end_date": spans.moment(end_date),
                    "filter_count": len(spans.keys(metadata_filters)),
                },
            )
            start, end = checks.time_range(start_date, end_date)
            filters = checks.metadata_filter(metadata_filters, "metadata_filters")
            engine = await self._engine()
            async with engine.database.reading(self._scope(engine)) as db:
                found = await engine.capabilities.documents.between(db, start, end, filters)
            spans.annotate(span, {"result_count": len(found)})
            return _documents(found)

    async def recall(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: UUID | str | None = None,
        exclude_session: UUID | str | None = None,
        roles: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        metadata_filters: dict[str, Any] | None = None,
        min_relevance: float | Literal["default"] | None = None,
        top_k: int = 10,
        token_budget: int | None = None,
        explain: bool = False,
        include_pinned: bool = False,
        now: datetime | None = None,
        half_life_days: float | None = None,
        min_trust: Trust | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Recollection:
        """Search everything that was stored for what answers a question, by keyword and semantic search combined.

        `min_relevance` and `min_trust` leave out what is less; `answered` says whether anything is left. "Yesterday"
        counts from `now`. With `half_life_days`, scores halve each time an item gets so many days older. `pinned` has
        the pinned memories if `include_pinned`. `namespaces` are searched together, and each result says its own.
        """
        async with self._call("recall") as span:
            spans.annotate(span, {"top_k": top_k, "filter_count": len(spans.keys(metadata_filters))})
            asked = Asked(
                query=query,
                user_id=user_id,
                agent_id=agent_id,
                session_id=session_id,
                exclude_session=exclude_session,
                roles=roles,
                kinds=kinds,
                categories=categories,
                since=since,
                until=until,
                as_of=as_of,
                valid_at=valid_at,
                metadata=metadata_filters,
                min_relevance=min_relevance,
                top_k=top_k,
                token_budget=token_budget,
                explain=explain,
                include_pinned=include_pinned,
                now=now,
                half_life_days=half_life_days,
                min_trust=min_trust,
                namespaces=namespaces,
            )
            engine = await self._engine()
            return spans.recalled(span, await asked.recall(engine, self._scope(engine), "metadata_filters"))

    async def forget(
        self,
        item: str | UUID | None = None,
        *,
        session_id: UUID | str | None = None,
        user_id: str | None = None,
        twins: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Permanently delete one item, a session or a user, including its search index.

        Name an item by the id that was returned for it, or by its kind and id, such as "memory:ID". `twins` deletes
        its duplicates, too; without it, the receipt lists them. The receipt counts the deleted rows; with `dry_run`,
        those that would be deleted.
        """
        async with self._call("forget") as span:
            named = [(None, item), (SESSION, session_id), (USER, user_id)]
            given = [(kind, str(name) if isinstance(name, UUID) else name) for kind, name in named if name is not None]
            if len(given) != 1:
                raise Invalid("Pass exactly one of item, session_id or user_id")
            ((kind, name),) = given
            if not isinstance(name, str):
                raise Invalid(f"Pass the id of what to forget, not a {type(name).__name__}")
            target = Target.named(name) if kind is None else Target(kind, name)
            engine = await self._engine()
            step = engine.forget.count if dry_run else engine.forget.forget
            receipt = await step(self._scope(engine), target, twins=twins)
            spans.annotate(span, {"result_count": receipt.total})
            return receipt

    async def changes(self, since: int = 0, *, limit: int = DEFAULT_LIMIT) -> ChangesPage:
        """What happened to memories behind the change with the number `since`, oldest first.

        Go on with `next` of the page. An empty page means that nothing has happened since.
        """
        async with self._call("changes") as span:
            spans.annotate(span, {"limit": limit})
            engine = await self._engine()
            page = await engine.feed.page(self._scope(engine), since, limit)
            spans.annotate(span, {"result_count": len(page.entries)})
            return ChangesPage.of(page)

    async def lineage(self, item: str | UUID) -> ItemLineage:
        """How an item came about: what happened to it, who did that, and what it was made from.

        Name it by the id that was returned for it, or by its kind and id, such as "memory:ID".
        """
        async with self._call("lineage"):
            if not isinstance(item, str | UUID):
                raise Invalid(f"Pass the id of an item, not a {type(item).__name__}")
            engine = await self._engine()
            return ItemLineage.of(await engine.lineage.of(self._scope(engine), str(item)))

    async def export(self, *, user_id: str | None = None) -> AsyncIterator[str]:
        """Everything that is stored, or everything of one user, as lines of JSON for `recollect import`.

        It is a snapshot, streamed line by line. If you leave the loop early, use `contextlib.aclosing` to give the
        connection back.
        """
        # The span is over before the first line: one that lasts would be the parent of whatever is done between lines.
        async with self._call("export"):
            engine = await self._engine()
        lines = engine.exporting.lines(self._scope(engine), user_id)
        with storage_failures():
            while True:
                # Between lines, the caller's own work is not a part of this.
                with origin.touching() as touched:
                    line = await anext(lines, None)
                if touched:
                    await engine.audit.record(self._scope(engine), "export", "done", touched)
                if line is None:
                    return
                yield line

    async def flush(self) -> str | None:
        """Wait until everything stored so far is embedded. Returns None, or why it cannot be."""
        async with self._call("flush"):
            engine = await self._engine()
            return await engine.indexer.flush(self._scope(engine))

    async def health_check(self) -> dict[str, Any]:
        """Check database connectivity and return health status."""
        async with self._call("health_check") as span:
            spans.annotate(span, {"status": "unhealthy", "postgres_version": "unknown"})
            engine = await self._engine()
            versions = await engine.health()
            spans.annotate(span, {"status": "healthy", "postgres_version": versions.postgres})
            return {
                "status": "healthy",
                "postgres_version": versions.postgres,
                "pgvector_version": versions.pgvector,
            }


def _new_owner(user_id: str | None) -> str:
    return ANONYMOUS if user_id is None else checks.identifier(user_id, "user_id")


def _session_key(session_id: UUID) -> str:
    if not isinstance(session_id, UUID):
        raise Invalid(f"session_id must be a UUID, not {type(session_id).__name__}")
    return str(session_id)


# Validating a list at once is several times quicker than building its models one by one.
_as_messages = TypeAdapter(list[models.Message]).validate_python
_as_documents = TypeAdapter(list[models.Document]).validate_python


def _session(session: sessions.Session) -> models.Session:
    return models.Session(
        id=UUID(session.id),
        user_id=session.user_id,
        created_at=session.created_at,
        updated_at=session.updated_at,
        metadata_=checks.as_object(session.metadata) or {},
    )


def _documents(found: list[documents.Document]) -> list[models.Document]:
    return _as_documents(
        [
            {
                "id": document.id,
                "content": document.content,
                "embedding": document.embedding,
                "metadata_": document.metadata or {},
                "created_at": document.created_at,
                "updated_at": document.updated_at,
            }
            for document in found
        ]
    )
