"""What forgetting a session, a user or a namespace would delete, counted without deleting anything."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from recollect.flows.accounts.access import Access
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.forgetting.removal import ITEMS_AT_ONCE
from recollect.flows.kinds import registry
from recollect.flows.kinds.kind import UUIDS, Count, Ids, Item, Owned
from recollect.flows.kinds.long_term import count_memories
from recollect.flows.short_term.window_stores import WindowStore
from recollect.storage import erasure
from recollect.storage.database import Database

Fetch = Callable[..., Awaitable[Ids]]


class Counts:
    """Says of each kind how many rows would go."""

    def __init__(self, database: Database, capabilities: Capabilities, store: WindowStore, access: Access) -> None:
        self._database = database
        self._capabilities = capabilities
        self._store = store
        self._access = access

    async def user(self, namespace: str, user_id: str, tally: Tally) -> None:
        """All that a user has."""
        tally.add("api_keys", await self._access.keys_of_user(namespace, user_id))
        async with self._database.reading(namespace) as db:
            session_ids = await self._capabilities.sessions.some_of_user(db, user_id, None)
            giants = [giant for giant in await self._capabilities.giants.known(db) if giant.owner == user_id]
        tally.add("giants", len(giants))
        await self.sessions(namespace, session_ids, tally, of_users=False)
        for item, owned in registry.owned():
            async for page in self.pages_of_user(namespace, item, owned, user_id):
                await self._count(namespace, item.name, owned.count, page, tally)

    async def sessions(self, namespace: str, session_ids: Sequence[str], tally: Tally, *, of_users: bool) -> None:
        """All that sessions have; without `of_users`, no memories that a user holds as well."""
        tally.add("buffers", len(await self._store.external_sessions(namespace, session_ids)))
        async with self._database.reading(namespace) as db:
            tally.add("sessions", len(await self._capabilities.sessions.owners_of(db, session_ids)))
            tally.add("messages", await self._capabilities.log.count_in_sessions(db, session_ids))
            tally.add("summaries", await self._capabilities.windows.count_summaries(db, session_ids))
            tally.add("passages", await self._capabilities.passages.count_in_sessions(db, session_ids))
            insights = tally.made_from(await self._capabilities.insights.made_from_sessions(db, session_ids))
            tally.add("insights", len(insights))
            tally.add("judge_scores", await self._capabilities.judging.count_of_documents(db, insights))
            tally.add(
                "passages", await self._capabilities.passages.count_of_items(db, "insight", list(map(str, insights)))
            )
        in_sessions = partial(self._capabilities.memories.in_sessions, session_ids=session_ids, of_users=of_users)
        async for page in self._pages(namespace, in_sessions, UUIDS.before_all):
            await self._count(namespace, "memory", count_memories, page, tally)

    async def whole(self, namespace: str, tally: Tally) -> None:
        """All that a namespace has."""
        tally.add("buffers", len(await self._store.external_sessions(namespace, None)))
        for table, size in (await erasure.sizes(self._database, namespace)).items():
            tally.add(table, size)

    def pages_of_user(self, namespace: str, item: Item, owned: Owned, user_id: str) -> AsyncIterator[Ids]:
        """The ids of one kind that a user owns, page by page."""
        return self._pages(namespace, partial(owned.of_user, self._capabilities, user_id=user_id), item.id.before_all)

    async def _pages(self, namespace: str, fetch: Fetch, behind: Any) -> AsyncIterator[Ids]:
        """Ids in order; `fetch` takes where to read, the id to begin behind, and how many."""
        while True:
            async with self._database.reading(namespace) as db:
                page = await fetch(db, behind=behind, limit=ITEMS_AT_ONCE)
            if not page:
                return
            yield page
            behind = page[-1]

    async def _count(self, namespace: str, item: str, count: Count, ids: Ids, tally: Tally) -> None:
        async with self._database.reading(namespace) as db:
            await count(self._capabilities, db, ids, tally)
            tally.add("passages", await self._capabilities.passages.count_of_items(db, item, list(map(str, ids))))
