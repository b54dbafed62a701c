"""Pinned memories: those that belong into every context of their scope, within a budget of tokens."""

from dataclasses import dataclass
from datetime import UTC, datetime

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.long_term.memories import LongTermMemory
from recollect.flows.long_term.memory_requests import Chosen
from recollect.language.tokens import estimate_tokens
from recollect.memory.memories import MemoryScope, Place, StoredMemory

PINNED_TOKENS = 800
"""Of all pinned memories in a context: they come with every prompt, and most of it should be about the prompt."""
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

    def __init__(self, memories: LongTermMemory) -> None:
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

        What is pinned for a user alone belongs into all of the user's sessions; what is pinned for one session, or one
        agent, only there. One that does not fit is passed over for the next.
        """
        return await self._within(namespace, scope, checks.positive(token_budget, "token_budget"), as_of, valid_at)

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
        checks.optional_identifier(scope.agent_id, "agent_id")
        checks.optional_identifier(scope.session_id, "session_id")
        chosen = Chosen(pinned=True, as_of=as_of, valid_at=valid_at or as_of or datetime.now(UTC))
        kept: list[StoredMemory] = []
        tokens = omitted = 0
        behind: Place | None = None
        while True:
            page = await self._memories.newest(namespace, _widest(scope), PAGE, behind, chosen)
            for memory in page.memories:
                if not _belongs(memory, scope):
                    continue
                size = estimate_tokens(memory.text)
                if tokens + size <= token_budget:
                    kept.append(memory)
                    tokens += size
                else:
                    omitted += 1
            if page.next is None:
                return Pinned(kept, tokens, omitted)
            behind = page.next


def _widest(scope: MemoryScope) -> MemoryScope:
    """The user; the agent or the session only where no user is named."""
    if scope.user_id is not None:
        return MemoryScope(user_id=scope.user_id)
    if scope.agent_id is not None:
        return MemoryScope(agent_id=scope.agent_id)
    if scope.session_id is None:
        raise Invalid("At least one of user_id, agent_id, or session_id must be provided: pinned memories have a scope")
    return scope


def _belongs(memory: StoredMemory, scope: MemoryScope) -> bool:
    """Whether it is pinned for no other agent and no other session."""
    return (scope.agent_id is None or memory.agent_id in (None, scope.agent_id)) and (
        scope.session_id is None or memory.session_id in (None, scope.session_id)
    )
