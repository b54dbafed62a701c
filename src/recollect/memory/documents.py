"""Documents: texts stored whole, found by the caller's own embeddings or by time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.identifiers import uuid7, uuid_of
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="documents.sql"):
    add: Query
    add_once: Query
    same: Query
    set_metadata: Query
    nearest: Query
    between: Query
    remove: Query
    page_documents: Query
    restore_documents: Query
    compare_documents: Query
    size_documents: Query


RECORD = Record(
    "document",
    "documents",
    ("id",),
    _Sql.page_documents,
    _Sql.restore_documents,
    _Sql.compare_documents,
    size=_Sql.size_documents,
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


class Documents:
    """Stores documents. Vectors and metadata arrive checked and encoded."""

    async def add(
        self, tx: Transaction, content: str, embedding: str | None, metadata: str | None
    ) -> tuple[UUID, datetime]:
        """Store one document; returns its id and its time."""
        row = await tx.one(_Sql.add, id=uuid7(), content=content, embedding=embedding, metadata=metadata)
        return row["id"], row["created_at"]

    async def add_once(self, tx: Transaction, content: str, metadata: str | None) -> tuple[UUID, datetime] | None:
        """Store a text under an id that follows from it; None if somebody else has just done so."""
        row = await tx.first(_Sql.add_once, id=uuid_of("remembered", content), content=content, metadata=metadata)
        return None if row is None else (row["id"], row["created_at"])

    async def same(self, tx: Transaction, content: str) -> tuple[UUID, dict[str, Any]] | None:
        """The oldest document with this very text, and its metadata; locked until the transaction ends."""
        row = await tx.first(_Sql.same, content=content)
        return None if row is None else (row["id"], row["metadata"] or {})

    async def set_metadata(self, tx: Transaction, document_id: UUID, metadata: str) -> None:
        """Give a document other metadata."""
        await tx.all(_Sql.set_metadata, document_id=document_id, metadata=metadata)

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
