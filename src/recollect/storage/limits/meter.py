"""Meter: charges what a transaction stores to the quotas of keys and users, in that same transaction.

So exactly what is stored is counted, however many processes write.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect import origin, quotas
from recollect.origin import Origin
from recollect.quotas import DAY, NO_QUOTA, QuotaReached, Subject, Text
from recollect.storage.sql import Queries, Query

# How long a count is trusted: meanwhile an operator may raise the quota, or forget the user.
CACHED_SECONDS = 2.0
MAX_CACHED = 10_000

Run = Callable[..., Awaitable[list[Any]]]


class _Sql(Queries, file="meter.sql"):
    charge: Query
    used: Query


@dataclass(slots=True)
class Amount:
    """Rows and bytes that are stored or were used."""

    rows: int = 0
    bytes: int = 0


class _Used(NamedTuple):
    """What was used of a day when it was read. By now it may be more."""

    amount: Amount
    since: datetime
    until: float


class Meter:
    """Remembers recent counts, so that what cannot fit is refused before it is written."""

    def __init__(self) -> None:
        self.users = NO_QUOTA
        self._used: dict[tuple[str, str, str], _Used] = {}

    def counts(self, by: Origin) -> bool:
        """Whether anything that a caller stores counts against a quota."""
        return self.users.limits_storage or (by.spender is not None and by.spender.quota.limits_storage)

    def subjects(self, by: Origin, user_id: str | None) -> list[Subject]:
        """The quotas that count what a caller stores for a user."""
        found = [] if by.spender is None or not by.spender.quota.limits_storage else [by.spender]
        if self.users.limits_storage and user_id and user_id != quotas.ANONYMOUS:
            found.append(Subject("user", user_id, self.users))
        return found

    def used(self, namespace: str, subject: Subject) -> Amount:
        """What a subject has used today, at least; zero if it was not read a moment ago."""
        used = self._used.get((namespace, subject.kind, subject.id))
        if used is None or used.until < time.monotonic() or used.since != today():
            return Amount()
        return used.amount

    def note(self, namespace: str, subject: Subject, amount: Amount) -> None:
        """Remember for a moment what was read."""
        if len(self._used) >= MAX_CACHED:
            self._used.clear()
        cached = _Used(amount, today(), time.monotonic() + CACHED_SECONDS)
        self._used[namespace, subject.kind, subject.id] = cached


class Tally:
    """What one transaction stores, by the quotas that count it."""

    __slots__ = ("_meter", "_namespace", "_stored")

    def __init__(self, meter: Meter, namespace: str) -> None:
        self._meter = meter
        self._namespace = namespace
        self._stored: dict[Subject, Amount] = {}

    def __bool__(self) -> bool:
        return bool(self._stored)

    @property
    def counts(self) -> bool:
        """Whether a quota counts what the present caller stores."""
        return self._meter.counts(origin.current())

    def add(self, user_id: str | None, *texts: Text, size: int = 0, rows: int = 1, by: Origin | None = None) -> None:
        """Count rows stored for a user by the present caller, or by another; `size` is the bytes of all but texts."""
        for subject in self._meter.subjects(by or origin.current(), user_id):
            amount = self._stored.setdefault(subject, Amount())
            amount.rows += rows
            amount.bytes += size + quotas.text_bytes(*texts)

    @property
    def is_known_not_to_fit(self) -> bool:
        """Whether recent counts, which are at most what is used by now, leave too little."""
        return any(
            excess(subject, amount, self._meter.used(self._namespace, subject))
            for subject, amount in self._stored.items()
        )

    async def refuse_by_count(self, run: Run) -> None:
        """Read the counts, and refuse what does not fit."""
        self._compare(await run(_Sql.used, **self._subjects(), since=today()), is_charged=False)

    async def charge(self, run: Run) -> None:
        """Charge everything, as the last statement of the transaction; raises if it exceeds a quota."""
        if self.is_known_not_to_fit:
            await self.refuse_by_count(run)
        rows = await run(
            _Sql.charge,
            **self._subjects(),
            rows=[amount.rows for amount in self._stored.values()],
            bytes=[amount.bytes for amount in self._stored.values()],
            since=today(),
        )
        self._compare(rows, is_charged=True)
        self._stored.clear()

    def _subjects(self) -> dict[str, list[str]]:
        return {
            "kinds": [subject.kind for subject in self._stored],
            "subjects": [subject.id for subject in self._stored],
        }

    def _compare(self, counts: list[Any], *, is_charged: bool) -> None:
        """Note counts, and refuse what exceeds a quota; those that are charged include what is stored."""
        by_name = {(subject.kind, subject.id): subject for subject in self._stored}
        for kind, name, rows, size in counts:
            subject = by_name[kind, name]
            amount = self._stored[subject]
            used = Amount(rows - amount.rows, size - amount.bytes) if is_charged else Amount(rows, size)
            self._meter.note(self._namespace, subject, used)
            refuse_beyond(subject, amount, used)


def today() -> datetime:
    """The start of the current day (UTC)."""
    return quotas.period_start(DAY, datetime.now(UTC))


def excess(subject: Subject, amount: Amount, used: Amount) -> QuotaReached | None:
    """Which quota an amount, with what is used, exceeds."""
    most_rows, most_bytes = subject.quota.rows_per_day, subject.quota.bytes_per_day
    if most_rows is not None and amount.rows and used.rows + amount.rows > most_rows:
        return QuotaReached(subject, "rows", used.rows, amount.rows)
    if most_bytes is not None and amount.bytes and used.bytes + amount.bytes > most_bytes:
        return QuotaReached(subject, "bytes", used.bytes, amount.bytes)
    return None


def refuse_beyond(subject: Subject, amount: Amount, used: Amount) -> None:
    """Refuse an amount that, with what is used, exceeds the quota."""
    if (refusal := excess(subject, amount, used)) is not None:
        raise refusal
