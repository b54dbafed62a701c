"""Tools for long-term memories: facts that change, with what was known and what is true at a time."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field

from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors import memories
from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_text
from recollect.doors.mcp.schema import WHOLE, AsOf, Moment
from recollect.doors.mcp.tool import ADDS, DELETES, MERGES, READS, Tools
from recollect.doors.memories import IF_SET, DeletedMemory, MemoryEvent, MemoryRecord, PinnedRecords
from recollect.flows.long_term.memories import MAX_LISTED
from recollect.flows.long_term.memory_requests import MAX_SOURCES, MAX_SUPERSEDED, Chosen, Options
from recollect.flows.long_term.memory_results import What, Written
from recollect.flows.long_term.pinned import PINNED_TOKENS
from recollect.memory.memories import MemoryScope

TOOLS = Tools(as_text)

Category = Literal["semantic", "episodic", "fact", "preference"]
Id = Annotated[str, Field(min_length=1, description="Id of a memory")]
Name = Annotated[str, Field(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
Metadata = dict[str, Any]
Key = Annotated[
    Name | None,
    Field(description="What it is about, such as 'home city': a newer memory with the same key and scope replaces it"),
]
ValidFrom = Annotated[Moment | None, Field(description="True in the world from then on")]
ValidUntil = Annotated[Moment | None, Field(description="True in the world until then")]
ExpiresAt = Annotated[Moment | None, Field(description="Erased at this time")]
ExpiresIn = Annotated[float | None, Field(gt=0, description="The same in seconds from now")]


class WrittenMemory(BaseModel):
    """What a model wants to know of a memory that it has changed; `degraded` says why only keywords find it."""

    id: UUID
    text: str
    since: datetime
    degraded: Annotated[str | None, IF_SET] = None

    @classmethod
    def of(cls, written: Written) -> Self:
        """A memory after a change."""
        memory = written.memory
        return cls(id=memory.id, text=memory.text, since=memory.since, degraded=written.degraded)


class AddedMemory(WrittenMemory):
    """The memory that now says it, new or not, and the ids of those that it replaced."""

    outcome: What
    superseded: Annotated[list[UUID], IF_SET] = []


@TOOLS.tool("Add memory", ADDS)
async def add_memory(
    caller: Caller,
    text: Annotated[str, Field(min_length=1, description="One fact, in a full sentence")],
    category: Category = "fact",
    user_id: Annotated[Name | None, Field(description="Whose memory it is; at least one of three ids")] = None,
    agent_id: Name | None = None,
    session_id: Name | None = None,
    metadata: Metadata | None = None,
    at: Annotated[Moment | None, Field(description="When it was said (default: now)")] = None,
    key: Key = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    expires_at: ExpiresAt = None,
    expires_in: ExpiresIn = None,
    pinned: bool | None = None,
    supersedes: Annotated[
        list[str] | None, Field(max_length=MAX_SUPERSEDED, description="Ids of memories in this scope it replaces")
    ] = None,
    sources: Annotated[
        list[str] | None, Field(max_length=MAX_SOURCES, description="What it was made from, such as message:ID")
    ] = None,
) -> AddedMemory:
    """Store a long-term memory of a user, agent or session. A duplicate in the same scope is stored once."""
    options = Options(valid_from, valid_until, key, expires_at, pinned, supersedes or (), sources or (), expires_in)
    scope = MemoryScope(user_id, agent_id, session_id)
    added = await caller.engine.memories.add(caller.namespace, text, category, scope, metadata, at=at, options=options)
    memory = added.memory
    return AddedMemory(
        id=memory.id,
        text=memory.text,
        since=memory.since,
        degraded=added.degraded,
        outcome=added.what,
        superseded=list(added.superseded),
    )


@TOOLS.tool("Update memory", MERGES)
async def update_memory(
    caller: Caller,
    id: Id,  # noqa: A002
    text: Annotated[str | None, Field(min_length=1, description="The new text")] = None,
    category: Category | None = None,
    metadata: Annotated[Metadata | None, Field(description="Merged; keys with null are removed")] = None,
    key: Key = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    expires_at: ExpiresAt = None,
    expires_in: ExpiresIn = None,
    pinned: bool | None = None,
    clear: Annotated[list[memories.Clearable] | None, Field(description="Fields to remove")] = None,
) -> WrittenMemory:
    """Change a memory; fields that are omitted stay. What it was before is kept for as_of."""
    details = {
        "key": key,
        "valid_from": valid_from,
        "valid_until": valid_until,
        "expires_at": expires_at,
        "expires_in": expires_in,
        "pinned": pinned,
    }
    change = memories.change_of(text, category, metadata, details, clear or ())
    return WrittenMemory.of(await caller.engine.memories.update(caller.namespace, id, change))


@TOOLS.tool("Undo supersession", MERGES)
async def undo_memory(caller: Caller, id: Id) -> WrittenMemory:  # noqa: A002
    """Restore a memory that a newer one superseded. If they have the same key, the newer one is superseded."""
    return WrittenMemory.of(await caller.engine.memories.undo(caller.namespace, id))


@TOOLS.tool("Delete memory", DELETES)
async def delete_memory(
    caller: Caller,
    id: Id,  # noqa: A002
    restore: Annotated[bool, Field(description="Also restore the memories that it had superseded")] = False,
) -> DeletedMemory:
    """Permanently delete a memory with all its past versions. Its history stays, without texts."""
    return DeletedMemory.of(await caller.engine.memories.delete(caller.namespace, id, restore=restore))


@TOOLS.tool("List memories", READS)
async def list_memories(
    caller: Caller,
    user_id: Name | None = None,
    agent_id: Name | None = None,
    session_id: Name | None = None,
    key: Name | None = None,
    pinned: bool | None = None,
    categories: Annotated[list[Category] | None, Field(min_length=1)] = None,
    as_of: AsOf = None,
    valid_at: Annotated[Moment | None, Field(description="Only what is true in the world then")] = None,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED), WHOLE] = memories.DEFAULT_LIMIT,
) -> list[MemoryRecord]:
    """List the memories in force, newest first."""
    chosen = Chosen(categories, key=key, pinned=pinned, as_of=as_of, valid_at=valid_at)
    scope = MemoryScope(user_id, agent_id, session_id)
    page = await caller.engine.memories.newest(caller.namespace, scope, limit, chosen=chosen)
    return list(map(MemoryRecord.of, page.memories))


@TOOLS.tool("Pinned memories", READS)
async def pinned_memories(
    caller: Caller,
    user_id: Annotated[Name | None, Field(description="Pinned for this user; at least one of three ids")] = None,
    agent_id: Name | None = None,
    session_id: Name | None = None,
    token_budget: Annotated[int, Field(ge=1, lt=2**31), WHOLE] = PINNED_TOKENS,
    as_of: AsOf = None,
) -> PinnedRecords:
    """Return the pinned memories, which belong in every prompt, newest first, within a token budget."""
    scope = MemoryScope(user_id, agent_id, session_id)
    return PinnedRecords.of(await caller.engine.pinned.of(caller.namespace, scope, token_budget, as_of=as_of))


@TOOLS.tool("Get memory", READS)
async def get_memory(caller: Caller, id: Id, as_of: AsOf = None) -> MemoryRecord:  # noqa: A002
    """Return one memory, also a superseded one."""
    return MemoryRecord.of(await caller.engine.memories.get(caller.namespace, id, as_of))


@TOOLS.tool("Memory history", READS)
async def memory_history(caller: Caller, id: Id) -> list[MemoryEvent]:  # noqa: A002
    """List what happened to a memory, even if it was deleted, oldest first."""
    return list(map(MemoryEvent.of, await caller.engine.memories.history(caller.namespace, id)))
