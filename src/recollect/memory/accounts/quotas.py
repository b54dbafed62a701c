"""Quotas: what keys and users have used in the current minute and day."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from recollect.quotas import Quota, Subject
from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="quotas.sql"):
    take_requests: Query
    used: Query
    remove_of_user: Query


class Used(NamedTuple):
    """Requests this minute, including those that processes have reserved, and rows and bytes today."""

    requests: int = 0
    rows: int = 0
    bytes: int = 0

    def described(self, quota: Quota) -> list[str]:
        """How much of each part of a quota is used, in words; unlimited parts are left out."""
        # Processes may together reserve more requests than are allowed, and refuse those above.
        most_requests = quota.requests_per_minute
        used = self if most_requests is None else self._replace(requests=min(self.requests, most_requests))
        limits = zip(used, quota.numbers().values(), ("requests this minute", "rows today", "bytes today"), strict=True)
        return [f"{count:,} of {most:,} {what}" for count, most, what in limits if most is not None]


class QuotaUse:
    """Counts requests; what is stored is charged by `recollect.storage.limits.meter`."""

    async def take_requests(self, tx: Transaction, subject: Subject, minute: datetime, requests: int) -> int:
        """Reserve requests of a minute; returns how many all processes have reserved, perhaps more than allowed."""
        values = {"kind": subject.kind, "subject": subject.id, "since": minute, "requests": requests}
        return int((await tx.one(_Sql.take_requests, **values))["requests"])

    async def used(
        self, db: Statements, kind: str, subjects: Sequence[str], minute: datetime, day: datetime
    ) -> dict[str, Used]:
        """What keys or users have used; those that have used nothing may be missing."""
        rows = await db.all(_Sql.used, kind=kind, subjects=list(subjects), minute=minute, day=day)
        return {name: Used(*numbers) for name, *numbers in rows}

    async def remove_of_user(self, tx: Transaction, user_id: str) -> None:
        """Delete a user's counts."""
        await tx.all(_Sql.remove_of_user, user_id=user_id)
