"""Bookmarks: addresses that a user kept, and why."""

from collections.abc import Sequence
from datetime import datetime

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="bookmarks.sql"):
    add: Query
    of_user: Query
    remove: Query
    page_bookmarks: Query
    restore_bookmarks: Query
    compare_bookmarks: Query
    size_bookmarks: Query


RECORD = Record(
    "bookmark",
    "bookmarks",
    ("id",),
    _Sql.page_bookmarks,
    _Sql.restore_bookmarks,
    _Sql.compare_bookmarks,
    size=_Sql.size_bookmarks,
)


class Bookmarks:
    """Stores bookmarks; finding them is recall's work."""

    async def add(self, tx: Transaction, user_id: str, address: str, reason: str) -> tuple[int, datetime]:
        row = await tx.one(_Sql.add, user_id=user_id, address=address, reason=reason)
        return row["id"], row["created_at"]

    async def of_user(self, db: Statements, user_id: str, behind: int, limit: int) -> list[int]:
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]

    async def remove(self, tx: Transaction, ids: Sequence[int]) -> int:
        return len(await tx.all(_Sql.remove, ids=list(ids)))
