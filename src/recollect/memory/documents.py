"""Documents: texts stored whole, found by the caller's own embeddings or by time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.identifiers import uuid_of
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="documents.sql"):
    add: Query
    contents: Query
    add_once: Query
    same: Query
    set_metadata: Query
    nearest: Query
    between: Query
    remove: Query
    page_documents: Query
    restore_documents: Query
    replace_documents: Query
    compare_documents: Query
    size_documents: Query
    shown_documents: Query


RECORD = Record(
    "document",
    "documents",
    ("id",),
    _Sql.page_documents,
    _Sql.restore_documents,
    _Sql.compare_documents,
    size=_Sql.size_documents,
    replace=_Sql.replace_documents,
    shown=_Sql.shown_documents,
    page_size=PAGE_OF_TEXTS,
)


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document; the embedding is what its caller gave."""

    id: UUID
    content: str
    embedding: list[float] | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to be stored, checked and encoded by its door. Without a time it takes the commit's."""

    content: str
    embedding: str | None = None
    metadata: str | None = None
    at: datetime | None = None
    id: UUID | None = None
    """One that brings its id is stored once, however often it comes."""

    def size(self) -> int:
        """About how many bytes travel to the database."""
        return len(self.content) + len(self.embedding or "") + len(self.metadata or "")


# Of documents that go into one statement, whose values are put together on the event loop.
PART_DOCUMENTS = 256
PART_BYTES = 4 * 1024 * 1024


def in_parts(new: Mapping[UUID, NewDocument]) -> Iterator[dict[UUID, NewDocument]]:
    """As many documents at a time as go into one statement."""
    part: dict[UUID, NewDocument] = {}
    size = 0
    for document_id, document in new.items():
        if part and (len(part) == PART_DOCUMENTS or size + document.size() > PART_BYTES):
            yield part
            part, size = {}, 0
        part[document_id] = document
        size += document.size()
    if part:
        yield part


class Documents:
    """Stores documents. Vectors and metadata arrive checked and encoded."""

    async def add(self, tx: Transaction, new: Mapping[UUID, NewDocument]) -> dict[UUID, datetime]:
        """Store documents under ids; returns the times of those whose ids were not taken."""
        rows = await tx.all(
            _Sql.add,
            ids=list(new),
            contents=[document.content for document in new.values()],
            embeddings=[document.embedding for document in new.values()],
            metadatas=[document.metadata for document in new.values()],
            times=[document.at for document in new.values()],
        )
        for row in rows:
            tx.tally.add(None, new[row["id"]].content, new[row["id"]].metadata)
        return {row["id"]: row["created_at"] for row in rows}

    async def contents(self, tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, str]:
        """The texts of those of some documents that exist."""
        return {row["id"]: row["content"] for row in await tx.all(_Sql.contents, ids=list(ids))}

    async def add_once(
        self, tx: Transaction, content: str, metadata: str | None, at: datetime | None
    ) -> tuple[UUID, datetime] | None:
        """Store a text under an id that follows from it; None if somebody else has just done so."""
        row = await tx.first(
            _Sql.add_once, id=uuid_of("remembered", content), content=content, metadata=metadata, at=at
        )
        if row is None:
            return None
        tx.tally.add(None, content, metadata)
        return row["id"], row["created_at"]

    async def same(self, tx: Transaction, content: str) -> tuple[UUID, dict[str, Any], datetime] | None:
        """The oldest document with this very text, its metadata and its time; locked until the transaction ends."""
        row = await tx.first(_Sql.same, content=content)
        return None if row is None else (row["id"], row["metadata"] or {}, row["created_at"])

    async def set_metadata(self, tx: Transaction, document_id: UUID, metadata: str) -> None:
        """Give a document other metadata."""
        await tx.all(_Sql.set_metadata, document_id=document_id, metadata=metadata)
        tx.tally.add(None, metadata)

    async def nearest(
        self, db: Statements, query_embedding: str, limit: int, metadata_filter: str | None
    ) -> list[Document]:
        """The documents nearest to a vector of the caller's space."""
        return [
            _document(*row)
            for row in await db.all(
                _Sql.nearest, query_embedding=query_embedding, limit=limit, metadata_filter=metadata_filter
            )
        ]

    async def between(
        self, db: Statements, start: datetime, end: datetime, metadata_filter: str | None
    ) -> list[Document]:
        """The documents of a range of time, newest first."""
        return [
            _document(*row) for row in await db.all(_Sql.between, start=start, end=end, metadata_filter=metadata_filter)
        ]

    async def remove(self, tx: Transaction, document_id: UUID) -> bool:
        """Delete one document; False if there is none."""
        return await tx.first(_Sql.remove, document_id=document_id) is not None


def _document(
    document_id: UUID,
    content: str,
    embedding: str | None,
    metadata: dict[str, Any] | None,
    created_at: datetime,
    updated_at: datetime,
) -> Document:
    # pgvector's text form gives the shortest number that is the same float32, so a caller's 0.1 comes back as 0.1.
    numbers = None if embedding is None else [float(number) for number in embedding[1:-1].split(",")]
    return Document(document_id, content, numbers, metadata, created_at, updated_at)
