"""Quotas: counts the requests of keys and users across all processes, and reports what is used.

A process reserves a minute's requests a few at a time, so that most requests need no statement. What is stored is
charged by `recollect.storage.limits.meter`.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from recollect import origin, quotas
from recollect.flows.accounts.access import locked_key
from recollect.memory.accounts.access import Credential, Key, Keys
from recollect.memory.accounts.quotas import QuotaUse, Used
from recollect.quotas import DAY, MINUTE, NO_QUOTA, Quota, QuotaReached, Subject
from recollect.storage.database import Database
from recollect.storage.limits.meter import Amount, refuse_beyond

# A process reserves at most a fiftieth of a minute's requests at a time, and at most an eighth of those left.
SHARE = 50
SHARE_OF_LEFT = 8

# Leases kept in memory. When there are more, all are dropped, and each key or user reserves again.
MAX_LEASES = 10_000


@dataclass(slots=True)
class _Lease:
    """Requests of a minute that this process has reserved and not used, and how many all processes have reserved."""

    minute: datetime | None = None
    left: int = 0
    taken: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Quotas:
    """Applies the quotas of keys (their own, or the default of the settings) and of users (from the settings)."""

    def __init__(
        self,
        database: Database,
        use: QuotaUse,
        keys: Keys,
        defaults: tuple[Quota | None, Quota | None],
        changed: Callable[[], None],
    ) -> None:
        self._database = database
        self._use = use
        self._keys = keys
        self.default_of_keys, self.quota_of_users = (each or NO_QUOTA for each in defaults)
        self._changed = changed
        self._leases: dict[tuple[str, str, str], _Lease] = {}
        self.now: Callable[[], float] = time.time
        database.meter.users = self.quota_of_users

    async def admit(self, key: Credential) -> Subject | None:
        """Count a request with a key, or refuse it; returns the key as the spender if it has a quota."""
        spender = Subject("key", key.key_id, key.quota.over(self.default_of_keys))
        await self._count(key.namespace, spender)
        if key.only_user is not None:
            await self.admit_user(key.namespace, key.only_user)
        return None if spender.quota == NO_QUOTA else spender

    async def admit_user(self, namespace: str, user_id: str) -> None:
        """Count a request made with a user's own key, or refuse it."""
        await self._count(namespace, Subject("user", user_id, self.quota_of_users))

    async def change(self, namespace: str, key_id: str, numbers: Mapping[str, int | None]) -> Key:
        """Change parts of a key's own quota, by field name. Servers apply it within two seconds."""
        origin.require_no_quota()
        async with self._database.transaction(namespace) as tx:
            key = await locked_key(tx, self._keys, key_id, "its quota is RECOLLECT_USER_QUOTA")
            if numbers:
                quota = replace(key.quota, **numbers)
                quotas.check(quota)
                key = await self._keys.set_quota(tx, key_id, quota)
        self._changed()
        return key

    async def used(self, namespace: str, keys: Sequence[Key]) -> dict[str, Used]:
        """What keys have used, by key id; only for keys with a quota."""
        limited = [key.id for key in keys if key.user_id is None and self.effective(key) != NO_QUOTA]
        is_own = limited == [origin.current().key_id]
        with origin.own_work() if is_own else nullcontext():  # whatever limits a key has, its own use it may see
            return await self._read(namespace, "key", limited) if limited else {}

    async def used_by_users(self, namespace: str, user_ids: Sequence[str]) -> dict[str, Used]:
        """What users have used, by user id; empty if users have no quota."""
        return await self._read(namespace, "user", user_ids) if user_ids and self.quota_of_users != NO_QUOTA else {}

    async def require_room(self, namespace: str, rows: int, size: int) -> None:
        """Refuse work that stores in several transactions, if it needs more than the key's quota has left."""
        spender = origin.current().spender
        if spender is not None:
            used = (await self._read(namespace, "key", [spender.id]))[spender.id]
            refuse_beyond(spender, Amount(rows, size), Amount(used.rows, used.bytes))

    def effective(self, key: Key) -> Quota:
        """The quota that applies to a key."""
        return self.quota_of_users if key.user_id is not None else key.quota.over(self.default_of_keys)

    async def _read(self, namespace: str, kind: str, subjects: Sequence[str]) -> dict[str, Used]:
        now = datetime.fromtimestamp(self.now(), UTC)
        async with self._database.reading(namespace) as db:
            found = await self._use.used(
                db, kind, subjects, quotas.period_start(MINUTE, now), quotas.period_start(DAY, now)
            )
        return {name: found.get(name, Used()) for name in subjects}

    async def _count(self, namespace: str, subject: Subject) -> None:
        most = subject.quota.requests_per_minute
        if most is None:
            return
        lease = self._leases.get((namespace, subject.kind, subject.id))
        if lease is None:
            if len(self._leases) >= MAX_LEASES:
                self._leases.clear()
            lease = self._leases[namespace, subject.kind, subject.id] = _Lease()
        minute = quotas.period_start(MINUTE, datetime.fromtimestamp(self.now(), UTC))
        if lease.minute != minute or lease.left == 0:
            # One request reserves for all that wait.
            async with lease.lock:
                if lease.minute != minute:
                    lease.minute, lease.left, lease.taken = minute, 0, 0
                if lease.left == 0 and lease.taken < most:
                    await self._take(namespace, subject, most, lease)
                if lease.left == 0:
                    raise QuotaReached(subject, "requests", most)
                lease.left -= 1
                return
        lease.left -= 1

    async def _take(self, namespace: str, subject: Subject, most: int, lease: _Lease) -> None:
        assert lease.minute is not None
        wanted = max(1, min(most // SHARE, (most - lease.taken) // SHARE_OF_LEFT))
        with origin.own_work():
            async with self._database.transaction(namespace) as tx:
                taken = await self._use.take_requests(tx, subject, lease.minute, wanted)
        lease.taken, lease.left = taken, min(wanted, max(0, most - (taken - wanted)))
