"""`/ltm/memories`: long-term memories of users, agents and sessions, as the REST contract has them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import Query, Request, Response
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    field_validator,
    model_validator,
)

from recollect import origin
from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors import cursors
from recollect.doors.recalls import floor, metadata_of_text
from recollect.doors.rest import answered, degraded
from recollect.doors.rest.bodies import SAID_AT, Body, ChatEntry, Moment, only_if_set
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routes.recall import AS_OF, FLOOR, HALF_LIFE, NAMESPACES, VALID_AT, Floor, HalfLife
from recollect.doors.rest.routing import Route, Router
from recollect.flows.long_term.echoes import MAX_RECALLED
from recollect.flows.long_term.memories import MAX_LISTED
from recollect.flows.long_term.memory_requests import (
    MAX_SOURCES,
    MAX_SUPERSEDED,
    Change,
    ChatLine,
    Chosen,
    Options,
    as_text,
    trust_of,
)
from recollect.flows.long_term.memory_results import Written
from recollect.memory.memories import HistoryEntry, MemoryScope, Place, StoredMemory
from recollect.trust import Trust

router = Router(prefix="/ltm/memories", tags=["ltm"], route_class=Route, responses=responses())

DEFAULT_LIMIT = 100

# What the contract's answers have no field for goes into headers, so that their bodies stay as it shows them.
OUTCOME = "X-Memory-Outcome"
SUPERSEDED = "X-Memory-Superseded"
NEXT_CURSOR = "X-Next-Cursor"

Category = Literal["semantic", "episodic", "fact", "preference"]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
Limit = Annotated[int, Field(ge=1, le=MAX_LISTED, description="Maximum results")]

SINCE = "Only memories created at this time or later; UTC if no time zone is given"
UNTIL = "Only memories created at this time or earlier"
CATEGORIES = "Only memories of these categories; all if omitted"
METADATA = "Only memories whose metadata contains this"
WHERE = "Only memories whose metadata meets these conditions"


class Scoped(Body):
    """A request with the scope of the memories."""

    user_id: Identifier | None = Field(None, description="User scope", examples=["user-42"])
    agent_id: Identifier | None = Field(None, description="Agent scope")
    session_id: Identifier | None = Field(None, description="Session scope")

    @model_validator(mode="after")
    def _has_a_scope(self) -> Self:
        is_unlimited = origin.current().limits is None  # else the key fills them in
        if is_unlimited and self.user_id is None and self.agent_id is None and self.session_id is None:
            raise ValueError("At least one of user_id, agent_id, or session_id must be provided")
        return self

    def scope(self) -> MemoryScope:
        """Whose memories."""
        return MemoryScope(self.user_id, self.agent_id, self.session_id)


MAX_MESSAGES = 1000
MAX_CATEGORIES = 4

KEY = "What the memory is about, such as `home city`: in one scope only the newest memory of a key is in force"


class Details(Body):
    """When a memory is true and how long it is kept."""

    valid_from: Moment | None = Field(None, description="True in the world from this time on")
    valid_until: Moment | None = Field(None, description="True in the world until this time")
    key: Identifier | None = Field(None, description=KEY, examples=["home city"])
    expires_at: Moment | None = Field(None, description="Removed, with its history's texts, at this time")
    expires_in: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="The same in seconds from now, instead of `expires_at`"
    )
    pinned: bool | None = Field(None, description="Pin it: it belongs in every prompt of its scope")


class MemoryMessage(ChatEntry):
    """One message of a chat. Unknown fields that chat clients send, and messages without text, are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: Identifier = Field(description="The role of the speaker", examples=["user"])
    name: Identifier | None = Field(None, description="The speaker's name, used instead of the role")


Remembered = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[MemoryMessage], Tag("chat")],
    Discriminator(lambda given: "chat" if isinstance(given, list) else "text"),
]


class AddMemory(Scoped, Details):
    """A memory to store: one call creates one memory."""

    messages: Remembered = Field(
        description="Memory content: plain string or chat message format",
        examples=["The user prefers dark mode and uses Vim."],
    )
    category: Category = Field(examples=["preference"])
    metadata: dict[str, Any] | None = Field(
        None, description="Additional metadata", examples=[{"source": "settings-page"}]
    )
    at: Moment | None = Field(None, description=SAID_AT)
    recalled: list[str] = Field(
        default_factory=list,
        max_length=MAX_RECALLED,
        description="Texts or ids of the memories in the prompt: a text that only repeats them is not stored again",
    )
    supersedes: list[str] = Field(
        default_factory=list,
        max_length=MAX_SUPERSEDED,
        description="Ids of memories in the same scope that this one replaces",
    )
    sources: list[str] = Field(
        default_factory=list,
        max_length=MAX_SOURCES,
        description="What it was made from, such as `message:ID` or `document:ID`",
    )
    trust: Trust | None = Field(
        None, description="Where the text comes from; by default the user, or the least trusted role of a chat"
    )

    @field_validator("messages", mode="before")
    @classmethod
    def _is_short(cls, messages: object) -> object:
        """Before each message is looked at: a list of faults would be longer still."""
        if isinstance(messages, list) and len(messages) > MAX_MESSAGES:
            raise ValueError(f"messages has more than {MAX_MESSAGES:,} entries: split them into several memories")
        return messages

    def options(self) -> Options:
        """All that it says of the memory besides its text."""
        details = {name: getattr(self, name) for name in Details.model_fields}
        told = None if isinstance(self.messages, str) else trust_of(self._lines())
        return Options(**details, supersedes=self.supersedes, sources=self.sources, trust=self.trust or told)

    def text(self) -> str:
        """What to remember, as one text."""
        if isinstance(self.messages, str):
            return self.messages
        return as_text(self._lines())

    def _lines(self) -> list[ChatLine]:
        chat = [] if isinstance(self.messages, str) else self.messages
        lines = [ChatLine(message.role, message.text(), message.name) for message in chat]
        return [line for line in lines if line.content.strip()]


class SearchMemories(Scoped):
    """A search in the memories of a scope."""

    query: str = Field(description="Natural language search query", examples=["What editor does the user prefer?"])
    categories: list[Category] | None = Field(
        None, min_length=1, max_length=MAX_CATEGORIES, description=CATEGORIES, examples=[["preference", "fact"]]
    )
    metadata: dict[str, Any] | None = Field(None, description=METADATA, examples=[{"source": "settings-page"}])
    where: dict[str, Any] | None = Field(None, description=WHERE, examples=[{"price": {"lt": 20}}])
    since: Moment | None = Field(None, description=SINCE)
    until: Moment | None = Field(None, description=UNTIL)
    as_of: Moment | None = Field(None, description=AS_OF)
    valid_at: Moment | None = Field(None, description=VALID_AT)
    min_relevance: Floor | None = Field(None, description=FLOOR)
    half_life_days: HalfLife | None = Field(None, description=HALF_LIFE)
    limit: Limit = Field(DEFAULT_LIMIT, examples=[10])
    namespaces: list[str] | None = NAMESPACES

    def chosen(self) -> Chosen:
        """Which memories of the scope."""
        named = ("categories", "metadata", "where", "since", "until", "as_of", "valid_at")
        return Chosen(**{name: getattr(self, name) for name in named})


class UpdateMemory(Body):
    """A new text for a memory."""

    data: str = Field(examples=["Updated memory content"])


class PatchMemory(Details):
    """What to change in a memory; omitted fields are kept. Null removes a time, a key or a pin, and keeps the rest."""

    data: str | None = Field(None, description="The new text", examples=["Updated memory content"])
    category: Category | None = Field(None, description="Another category")
    metadata: dict[str, Any] | None = Field(
        None,
        description="Merged into the metadata (RFC 7396): keys with null are removed, other keys stay",
        examples=[{"source": "chat", "reviewed": True}],
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.data is None and self.category is None and self.metadata is None and not self.details():
            raise ValueError("Nothing to change: send data, category, metadata, key, pinned or a time")
        return self

    def details(self) -> dict[str, Any]:
        """What is to be changed of these; null takes one away."""
        given = {name: getattr(self, name) for name in Details.model_fields if name in self.model_fields_set}
        if self.expires_in is None:
            given.pop("expires_in", None)
        return given | ({"pinned": bool(given["pinned"])} if "pinned" in given else {})


class MemoryResponse(BaseModel):
    """A memory, with the same fields in every answer; `score` only in search results."""

    id: str = Field(examples=["0199c1de-7a5c-7e3b-9d51-5c1f3a7e2b10"])
    memory: str = Field(examples=["The user prefers dark mode and uses Vim."])
    metadata: dict[str, Any] = Field(
        description="The caller's metadata and the category; `superseded_by` where a newer memory replaced this one",
        examples=[{"category": "preference", "source": "settings-page"}],
    )
    created_at: datetime = Field(examples=["2025-02-14T12:00:00Z"])
    updated_at: datetime | None = Field(examples=[None])
    score: float | None = Field(None, description="Similarity to the query, from 0 to 1", examples=[None])
    user_id: str | None = Field(description="The user it belongs to", examples=["user-42"])
    agent_id: str | None = Field(examples=[None])
    session_id: str | None = Field(examples=[None])
    valid_from: datetime | None = Field(None, description="True in the world from this time on")
    valid_until: datetime | None = Field(None, description="True in the world until this time")
    key: str | None = Field(None, description="In its scope, no other memory in force has this key")
    expires_at: datetime | None = Field(None, description="When it will be removed")
    pinned: bool = Field(False, description="Whether it is pinned: it belongs in every prompt of its scope")
    sources: list[str] = Field(default_factory=list, description="What it was made from")
    namespace: str | None = Field(None, description="Where it was found; only if the search names `namespaces`")

    _without_what_is_not_set = only_if_set(*Details.model_fields, "sources", "namespace")

    @classmethod
    def of(cls, memory: StoredMemory, score: float | None = None, namespace: str | None = None) -> Self:
        """A stored memory as the contract shows it."""
        metadata = {"category": memory.category} | memory.metadata | {"category": memory.category}
        metadata.pop("superseded_by", None)  # a caller's own would say of this memory what only we know
        if memory.superseded_by is not None:
            metadata["superseded_by"] = str(memory.superseded_by)
        return cls(
            id=str(memory.id),
            memory=memory.text,
            metadata=metadata,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            score=None if score is None else round(score, 4),
            user_id=memory.user_id,
            agent_id=memory.agent_id,
            session_id=memory.session_id,
            valid_from=memory.valid_from,
            valid_until=memory.valid_until,
            key=memory.key,
            expires_at=memory.expires_at,
            pinned=memory.pinned,
            sources=list(memory.sources),
            namespace=namespace,
        )


class MemoryResults(BaseModel):
    """Memories: best match first in search results, otherwise newest first."""

    results: list[MemoryResponse]


class DeletedMemory(BaseModel):
    """The deleted memory and the memories it had superseded."""

    id: str
    deleted: Literal[True] = True
    superseded: list[str] = Field(
        description="Memories that it had superseded; they stay superseded until you undo that"
    )
    restored: list[str] = Field(description="Memories that were restored (`restore=true`)")


class HistoryItem(BaseModel):
    """One change to a memory."""

    id: str
    memory_id: str
    old_memory: str | None = Field(description="The previous text; null once the memory is deleted")
    new_memory: str | None = Field(description="The new text; null once the memory is deleted")
    event: Literal["create", "update", "delete", "supersede", "undo", "expire"] = Field(examples=["update"])
    timestamp: datetime
    detail: dict[str, Any] | None = Field(
        None, description="Why and by what: the successor, and the language model if one decided"
    )

    _without_what_is_not_set = only_if_set("detail")

    @classmethod
    def of(cls, entry: HistoryEntry) -> Self:
        """An entry as the contract shows it."""
        return cls.model_validate(
            {
                "id": str(entry.id),
                "memory_id": str(entry.memory_id),
                "old_memory": entry.old_memory,
                "new_memory": entry.new_memory,
                "event": entry.event,
                "timestamp": entry.at,
                "detail": entry.detail,
            }
        )


class MemoryHistory(BaseModel):
    """All changes to a memory, in order."""

    entries: list[HistoryItem]


EMBEDDED: dict[int | str, dict[str, Any]] = {200: {"headers": degraded.DOCUMENTED}}
"""Of a route whose answer depends on the embedding model."""


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


@router.post(
    "",
    responses=responses(404, 409)
    | {
        200: {
            "headers": {
                OUTCOME: _header(
                    "created; existing (already stored in this scope); merged (already stored, new metadata merged); "
                    "echo (the text only repeats `recalled`)"
                ),
                SUPERSEDED: _header("Ids of the memories that this one replaced, separated by commas"),
            }
            | degraded.DOCUMENTED
        }
    },
)
async def add_memory(request: Request, body: AddMemory, response: Response) -> MemoryResponse:
    """Add a memory to long-term storage; a duplicate in the same scope is stored once."""
    caller = calling(request)
    added = await caller.engine.memories.add(
        caller.namespace,
        body.text(),
        body.category,
        body.scope(),
        body.metadata,
        body.recalled,
        body.at,
        body.options(),
    )
    response.headers[OUTCOME] = added.what
    if added.superseded:
        response.headers[SUPERSEDED] = ",".join(map(str, added.superseded))
    degraded.tell(response, added.degraded)
    return MemoryResponse.of(added.memory)


@router.post("/search", responses={200: {"headers": degraded.DOCUMENTED | answered.DOCUMENTED}})
async def search_memories(request: Request, body: SearchMemories, response: Response) -> MemoryResults:
    """Search memories by semantic similarity and keywords, best match first."""
    caller = calling(request)
    least = floor(body.min_relevance)
    found = await caller.engine.memories.search(
        caller.namespace,
        body.query,
        body.scope(),
        body.chosen(),
        body.limit,
        min_relevance=least,
        half_life_days=body.half_life_days,
        namespaces=body.namespaces,
    )
    degraded.tell(response, found.degraded)
    answered.tell(response, found, least)
    return MemoryResults(results=[MemoryResponse.of(hit.memory, hit.score, hit.namespace) for hit in found])


@router.get(
    "", responses={200: {"headers": {NEXT_CURSOR: _header("The `cursor` of the next page; absent on the last")}}}
)
async def list_memories(
    request: Request,
    response: Response,
    user_id: Annotated[Identifier | None, Query(description="Filter by user")] = None,
    agent_id: Annotated[Identifier | None, Query(description="Filter by agent")] = None,
    session_id: Annotated[Identifier | None, Query(description="Filter by session")] = None,
    categories: Annotated[list[Category] | None, Query(description=CATEGORIES, max_length=MAX_CATEGORIES)] = None,
    metadata: Annotated[str | None, Query(description=f"{METADATA}, a JSON object")] = None,
    where: Annotated[str | None, Query(description=f"{WHERE}, a JSON object")] = None,
    since: Annotated[Moment | None, Query(description=SINCE)] = None,
    until: Annotated[Moment | None, Query(description=UNTIL)] = None,
    key: Annotated[Identifier | None, Query(description="Only memories with this key")] = None,
    pinned: Annotated[bool | None, Query(description="Only pinned memories, or only others")] = None,
    as_of: Annotated[Moment | None, Query(description=AS_OF)] = None,
    valid_at: Annotated[Moment | None, Query(description=VALID_AT)] = None,
    limit: Annotated[Limit, Query()] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description=f"The header {NEXT_CURSOR} of the previous page")] = None,
) -> MemoryResults:
    """List memories with optional filters, newest first."""
    caller = calling(request)
    behind = None if cursor is None else Place(*cursors.read(cursor, UUID, f"the header {NEXT_CURSOR}"))
    scope = MemoryScope(user_id, agent_id, session_id)
    contained = None if metadata is None else metadata_of_text(metadata)
    met = None if where is None else metadata_of_text(where, "where")
    chosen = Chosen(categories, contained, since, until, key, pinned, as_of, valid_at, met)
    page = await caller.engine.memories.newest(caller.namespace, scope, limit, behind, chosen)
    if page.next is not None:
        response.headers[NEXT_CURSOR] = cursors.write(page.next.created_at, page.next.id)
    return MemoryResults(results=list(map(MemoryResponse.of, page.memories)))


@router.get("/{memory_id}", responses=responses(404))
async def get_memory(
    request: Request, memory_id: str, as_of: Annotated[Moment | None, Query(description=AS_OF)] = None
) -> MemoryResponse:
    """Get a specific memory by its id."""
    caller = calling(request)
    return MemoryResponse.of(await caller.engine.memories.get(caller.namespace, memory_id, as_of))


@router.put("/{memory_id}", responses=responses(404, 409) | EMBEDDED)
async def update_memory(request: Request, memory_id: str, body: UpdateMemory, response: Response) -> MemoryResponse:
    """Update a memory's content."""
    caller = calling(request)
    return _written(response, await caller.engine.memories.update(caller.namespace, memory_id, Change(body.data)))


@router.patch("/{memory_id}", responses=responses(404, 409) | EMBEDDED)
async def patch_memory(request: Request, memory_id: str, body: PatchMemory, response: Response) -> MemoryResponse:
    """Change a memory's content, category or metadata; omitted fields are kept."""
    caller = calling(request)
    change = Change(body.data, body.category, body.metadata, body.details())
    return _written(response, await caller.engine.memories.update(caller.namespace, memory_id, change))


@router.delete("/{memory_id}", responses=responses(404, 409))
async def delete_memory(
    request: Request,
    memory_id: str,
    restore: Annotated[bool, Query(description="Restore the memories that this one had superseded")] = False,
) -> DeletedMemory:
    """Delete a memory. Its history is kept, without the texts."""
    caller = calling(request)
    deleted = await caller.engine.memories.delete(caller.namespace, memory_id, restore=restore)
    return DeletedMemory(
        id=str(deleted.id),
        superseded=list(map(str, deleted.superseded)),
        restored=list(map(str, deleted.restored)),
    )


@router.post("/{memory_id}/undo", responses=responses(404, 409) | EMBEDDED)
async def undo_supersession(request: Request, memory_id: str, response: Response) -> MemoryResponse:
    """Restore a memory that a newer one superseded. If both have the same key, the newer one is superseded."""
    caller = calling(request)
    return _written(response, await caller.engine.memories.undo(caller.namespace, memory_id))


@router.get("/{memory_id}/history", responses=responses(404))
async def get_memory_history(request: Request, memory_id: str) -> MemoryHistory:
    """Get the change history of a memory, even if it was deleted."""
    caller = calling(request)
    entries = await caller.engine.memories.history(caller.namespace, memory_id)
    return MemoryHistory(entries=list(map(HistoryItem.of, entries)))


def _written(response: Response, written: Written) -> MemoryResponse:
    degraded.tell(response, written.degraded)
    return MemoryResponse.of(written.memory)
