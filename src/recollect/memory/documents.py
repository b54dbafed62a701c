"""Documents: texts stored whole, found by the caller's own embeddings or by time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.identifiers import uuid7
from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="documents.sql"):
    add: Query
    nearest: Query
    between: Query
    remove: Query


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
        row = await tx.one(_Sql.add, uuid7(), content, embedding, metadata)
        return row["id"], row["created_at"]

    async def nearest(
        self, db: Statements, query_embedding: str, limit: int, metadata_filter: str | None
    ) -> list[Document]:
        """The documents nearest to a vector of the caller's space."""
        return [_document(*row) for row in await db.all(_Sql.nearest, query_embedding, limit, metadata_filter)]

    async def between(
        self, db: Statements, start: datetime, end: datetime, metadata_filter: str | None
    ) -> list[Document]:
        """The documents of a range of time, newest first."""
        return [_document(*row) for row in await db.all(_Sql.between, start, end, metadata_filter)]

    async def remove(self, tx: Transaction, document_id: UUID) -> bool:
        """Delete one document; False if there is none."""
        return await tx.first(_Sql.remove, document_id) is not None


def _document(
    document_id: UUID,
    content: str,
    embedding: str | None,
    metadata: dict[str, Any] | None,
    created_at: datetime,
    updated_at: datetime,
) -> Document:
    return Document(document_id, content, _numbers(embedding), metadata, created_at, updated_at)


def _numbers(encoded: str | None) -> list[float] | None:
    """pgvector's text form gives the shortest number that is the same float32, so a caller's 0.1 comes back as 0.1."""
    return None if encoded is None else [float(number) for number in encoded[1:-1].split(",")]
