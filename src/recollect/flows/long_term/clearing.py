"""Clearing: deletes all long-term memories of a user, an agent, a session, or of everybody."""

from recollect import origin, telemetry
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.long_term.memory_requests import NO_SCOPE, check_scope
from recollect.flows.long_term.memory_writer import MemoryWriter
from recollect.memory.changes import Change
from recollect.memory.memories import MemoryScope
from recollect.storage.database import Database

# Memories that leave in one transaction.
CLEARED_AT_ONCE = 100
CLEARED = {"because": "cleared"}


class MemoryClearing:
    """Deletes in steps, each a short transaction: an interrupted call can be repeated."""

    def __init__(self, database: Database, capabilities: Capabilities, passage_writer: PassageWriter) -> None:
        self._database = database
        self._memories = capabilities.memories
        self._changes = capabilities.changes
        self._writer = MemoryWriter(capabilities.memories, capabilities.passages, capabilities.held, passage_writer)

    @telemetry.memory_operation("delete_memory", lambda deleted: deleted)
    async def clear(self, namespace: str, scope: MemoryScope, *, everybody: bool = False) -> int:
        """Delete the memories that have all ids of a scope, superseded ones included; returns how many there were.

        Their histories stay, without texts. A scope without ids is refused, unless everybody is meant.
        """
        origin.require("admin")
        if everybody and scope != MemoryScope():
            raise Invalid("everybody goes without user_id, agent_id and session_id: leave out one or the other")
        if everybody:
            origin.require_no_limits()
        elif scope == MemoryScope():
            # Also where the key would say whose: nobody means to delete all of it by leaving out a parameter.
            raise Invalid(NO_SCOPE)
        scope = check_scope(scope, needed=False)
        deleted = 0
        while True:
            async with self._database.transaction(namespace) as tx:
                locked = await self._memories.hold_scope(tx, scope, CLEARED_AT_ONCE)
                gone = await self._writer.remove(tx, locked, "delete") if locked else []
                await self._changes.record(tx, [Change("delete", MEMORY, str(each), CLEARED) for each in gone])
            deleted += len(gone)
            if len(locked) < CLEARED_AT_ONCE:
                return deleted
