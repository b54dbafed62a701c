"""Resources: texts that a user gave a URI, each kept in its last version."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.identifiers import uuid_of
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="resources.sql"):
    put: Query
    find: Query
    of_user: Query
    remove: Query
    page_resources: Query
    restore_resources: Query
    replace_resources: Query
    compare_resources: Query
    size_resources: Query
    shown_resources: Query


RECORD = Record(
    "resource",
    "resources",
    ("id",),
    _Sql.page_resources,
    _Sql.restore_resources,
    _Sql.compare_resources,
    size=_Sql.size_resources,
    replace=_Sql.replace_resources,
    shown=_Sql.shown_resources,
    page_size=PAGE_OF_TEXTS,
)

MAX_URI_CHARACTERS = 2048


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource without its text, which its passages hold."""

    id: UUID
    uri: str
    title: str | None
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime

    @property
    def replaced(self) -> bool:
        """Whether this is not the first text under its URI."""
        return self.updated_at != self.created_at


class Resources:
    """Stores resources; finding their passages is recall's work."""

    async def put(
        self,
        tx: Transaction,
        user_id: str,
        realm: str,
        uri: str,
        content: str,
        title: str | None,
        metadata: str | None,
    ) -> Resource:
        """Store a text under its URI, in place of an earlier one."""
        # One id for each user, realm and URI: the primary key keeps them unique.
        resource_id = uuid_of(user_id, realm, uri)
        row = await tx.one(
            _Sql.put,
            resource_id=resource_id,
            user_id=user_id,
            realm=realm,
            uri=uri,
            title=title,
            content=content,
            metadata=metadata,
        )
        tx.tally.add(user_id, title, content, metadata)
        return Resource(*row)

    async def find(self, db: Statements, ids: Sequence[UUID]) -> dict[UUID, Resource]:
        """Those of some resources that exist."""
        return {row["id"]: Resource(*row) for row in await db.all(_Sql.find, ids=list(ids))}

    async def of_user(self, db: Statements, user_id: str, behind: UUID, limit: int) -> list[UUID]:
        """The next resources of a user behind an id."""
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]

    async def remove(self, tx: Transaction, ids: Sequence[UUID]) -> int:
        """Delete resources; returns how many there were."""
        return len(await tx.all(_Sql.remove, ids=list(ids)))
