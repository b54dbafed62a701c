"""What forgetting a session, a user or a namespace would take: counted, and nothing removed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from uuid import UUID

from recollect.flows.access import Access
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.forgetting.removal import ITEMS_AT_ONCE
from recollect.flows.short_term.window_stores import WindowStore
from recollect.storage import erasure
from recollect.storage.database import Database

# Where the first page begins.
BEFORE_ALL = UUID(int=0)

Fetch = Callable[..., Awaitable[list[UUID]]]


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
        await self._count_memories(namespace, partial(self._capabilities.memories.of_user, user_id=user_id), tally)
        async for page in pages(
            self._database, namespace, partial(self._capabilities.resources.of_user, user_id=user_id)
        ):
            async with self._database.reading(namespace) as db:
                tally.add("resources", len(page))
                tally.add(
                    "passages", await self._capabilities.passages.count_of_items(db, "resource", list(map(str, page)))
                )

    async def sessions(self, namespace: str, session_ids: Sequence[str], tally: Tally, *, of_users: bool) -> None:
        """All that sessions have; without `of_users`, no memories that a user holds as well."""
        tally.add("buffers", len(await self._store.external_sessions(namespace, session_ids)))
        async with self._database.reading(namespace) as db:
            tally.add("sessions", len(await self._capabilities.sessions.holders(db, session_ids)))
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
        await self._count_memories(namespace, in_sessions, tally)

    async def whole(self, namespace: str, tally: Tally) -> None:
        """All that a namespace has."""
        tally.add("buffers", len(await self._store.external_sessions(namespace, None)))
        for table, size in (await erasure.sizes(self._database, namespace)).items():
            tally.add(table, size)

    async def _count_memories(self, namespace: str, fetch: Fetch, tally: Tally) -> None:
        async for page in pages(self._database, namespace, fetch):
            async with self._database.reading(namespace) as db:
                memories, history = await self._capabilities.memories.count(db, page)
                tally.add(
                    "passages", await self._capabilities.passages.count_of_items(db, "memory", list(map(str, page)))
                )
            tally.add("memories", memories)
            tally.add("memory_history", history)


async def pages(database: Database, namespace: str, fetch: Fetch) -> AsyncIterator[list[UUID]]:
    """Ids in order, page by page; `fetch` takes where to read, the id to begin behind, and how many."""
    behind = BEFORE_ALL
    while True:
        async with database.reading(namespace) as db:
            page = await fetch(db, behind=behind, limit=ITEMS_AT_ONCE)
        if not page:
            return
        yield page
        behind = page[-1]
