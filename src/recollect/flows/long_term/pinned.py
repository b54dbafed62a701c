"""Pinned memories: those that belong in every prompt of their scope, within a token budget."""

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from recollect import checks
from recollect.flows.long_term.memories import LongTermMemory
from recollect.flows.long_term.memory_requests import Chosen, check_scope
from recollect.language.tokens import estimate_tokens
from recollect.memory.memories import MemoryScope, Place, StoredMemory
from recollect.memory.sessions import Sessions
from recollect.storage.database import Database

PINNED_TOKENS = 800
"""Budget of all pinned memories together: they come with every prompt, and most of it should be about the question."""
# Read at once: each text may have 16 MB.
PAGE = 50


@dataclass(frozen=True, slots=True)
class Pinned:
    """The pinned memories that fit, newest first, how many tokens they take, and how many did not fit."""

    memories: list[StoredMemory]
    tokens: int
    omitted: int

    def left_of(self, token_budget: int | None) -> int | None:
        """What they leave of a budget that they share with the results of a recall."""
        return None if token_budget is None else token_budget - self.tokens


class PinnedMemories:
    """Reads what is pinned in a scope; who puts it into a context says there that it is pinned."""

    def __init__(self, database: Database, sessions: Sessions, memories: LongTermMemory) -> None:
        self._database = database
        self._sessions = sessions
        self._memories = memories

    async def of(
        self,
        namespace: str,
        scope: MemoryScope,
        token_budget: int = PINNED_TOKENS,
        *,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Pinned:
        """Those in force, and true in the world at that time (now by default), newest first.

        A memory belongs if it has one of the ids of the scope and none that differs: what is pinned for a user alone
        belongs in all of the user's sessions, what is pinned for one session only there. A memory that does not fit is
        skipped, and the next one is tried.
        """
        return await self._within(namespace, scope, checks.positive(token_budget, "token_budget"), as_of, valid_at)

    async def of_session(self, namespace: str, session_id: str, as_of: datetime | None = None) -> Pinned:
        """The same for the context of a session: what is pinned for it, or for the user to whom it belongs."""
        async with self._database.reading(namespace) as db:
            owner = (await self._sessions.owners_of(db, [session_id])).get(session_id)
        user = None if owner is None or owner.realm else owner.user_id or None
        return await self.of(namespace, MemoryScope(user, None, session_id), as_of=as_of)

    async def beside_recall(
        self,
        namespace: str,
        scope: MemoryScope,
        token_budget: int | None,
        *,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Pinned:
        """The same, beside what a recall finds: of a budget for both they take half at most."""
        share = PINNED_TOKENS
        if token_budget is not None:
            share = min(share, checks.positive(token_budget, "token_budget") // 2)
        return await self._within(namespace, scope, share, as_of, valid_at)

    async def _within(
        self,
        namespace: str,
        scope: MemoryScope,
        token_budget: int,
        as_of: datetime | None,
        valid_at: datetime | None,
    ) -> Pinned:
        scope = check_scope(scope)
        chosen = Chosen(pinned=True, as_of=as_of, valid_at=valid_at or as_of or datetime.now(UTC))
        sizes: dict[UUID, int] = {}
        fitting: list[StoredMemory] = []
        async for memory in self._in_scope(namespace, scope, chosen):
            if memory.id not in sizes:
                sizes[memory.id] = estimate_tokens(memory.text)
                # Longer ones fit nowhere, and need not be held.
                fitting += [memory] if sizes[memory.id] <= token_budget else []
        kept: list[StoredMemory] = []
        tokens = 0
        for memory in sorted(fitting, key=lambda each: (each.created_at, each.id), reverse=True):
            if tokens + sizes[memory.id] <= token_budget:
                kept.append(memory)
                tokens += sizes[memory.id]
        return Pinned(kept, tokens, len(sizes) - len(kept))

    async def _in_scope(self, namespace: str, scope: MemoryScope, chosen: Chosen) -> AsyncIterator[StoredMemory]:
        """Memories that have one of the ids of a scope and none that differs; one that has several ids comes again."""
        ids = {name: value for name, value in asdict(scope).items() if value is not None}
        for name, value in ids.items():
            behind: Place | None = None
            while True:
                page = await self._memories.newest(namespace, MemoryScope(**{name: value}), PAGE, behind, chosen)
                for memory in page.memories:
                    if all(getattr(memory, each) in (None, ids[each]) for each in ids):
                        yield memory
                if page.next is None:
                    break
                behind = page.next
