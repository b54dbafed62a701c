"""Three small tools for agents: remember, recall, forget."""

from datetime import datetime
from operator import not_
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from recollect.doors import recalls
from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_text
from recollect.doors.mcp.schema import WHOLE, Moment
from recollect.doors.mcp.tool import ADDS, DELETES, READS, Tools

TOOLS = Tools(as_text)

MAX_TOP_K = 100


class Remembered(BaseModel):
    """The id of the stored text, and whether it was already stored."""

    id: str
    existing: bool


class RecalledMemory(BaseModel):
    """One memory, its speaker, if any, where it comes from (`trust`), and its duplicates (`repeats`)."""

    id: str
    text: str
    score: float
    relevance: float
    at: datetime
    speaker: str | None
    trust: str
    session_id: str | None
    metadata: dict[str, Any] | None
    repeats: list[str]
    explanation: dict[str, Any] | None
    namespace: str | None = Field(None, exclude_if=not_)

    @classmethod
    def of(cls, memory: recalls.RecalledMemory) -> Self:
        """The same with the ids that `forget` takes."""
        return cls(
            id=f"{memory.kind}:{memory.id}",
            text=memory.text,
            score=round(memory.score, 4),
            relevance=round(memory.relevance, 4),
            at=memory.at,
            speaker=memory.speaker or memory.role,
            trust=memory.trust,
            session_id=memory.session_id,
            metadata=memory.metadata,
            repeats=[f"{memory.kind}:{repeat}" for repeat in memory.repeats],
            explanation=None if memory.explanation is None else memory.explanation.model_dump(),
            namespace=memory.namespace,
        )


class Recalled(BaseModel):
    """What was recalled; `pending` passages are not embedded yet; `degraded` says why only keyword search ran."""

    memories: list[RecalledMemory]
    answered: bool
    pending: int
    degraded: str | None


class Forgotten(BaseModel):
    """Rows deleted, by kind. Kept: `insights_left`, also based on others' messages, and the duplicates `twins_left`."""

    id: str
    rows: dict[str, int]
    insights_left: list[int]
    twins_left: list[str]


@TOOLS.tool("Remember", ADDS)
async def remember(
    caller: Caller,
    text: Annotated[str, Field(min_length=1, description="Text to remember, in full sentences")],
    metadata: dict[str, Any] | None = None,
    at: Annotated[Moment | None, Field(description="When it was said (default: now)")] = None,
) -> Remembered:
    """Store a text permanently for keyword and semantic search. Returns its id."""
    remembered = await caller.engine.remember.text(caller.namespace, text, metadata, at)
    return Remembered(id=f"document:{remembered.id}", existing=remembered.what == "existing")


@TOOLS.tool("Recall", READS)
async def recall(
    caller: Caller,
    query: Annotated[str, Field(min_length=1, description="Question or keywords")],
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K), WHOLE] = recalls.DEFAULT_TOP_K,
    user_id: str | None = None,
    agent_id: str | None = None,
    session_id: str | None = None,
    exclude_session: str | None = None,
    roles: Annotated[list[str] | None, Field(description="user, assistant")] = None,
    kinds: Annotated[list[str] | None, Field(description="message, document, memory, insight...")] = None,
    categories: list[str] | None = None,
    since: Annotated[str | None, Field(description="ISO 8601")] = None,
    until: str | None = None,
    as_of: Annotated[str | None, Field(description="Answer as of then")] = None,
    valid_at: str | None = None,
    metadata: dict[str, Any] | None = None,
    min_relevance: Annotated[float | None, Field(description="0 to 1")] = None,
    min_trust: Annotated[str | None, Field(description="Such as user")] = None,
    namespaces: list[str] | None = None,
    explain: bool = False,
) -> Recalled:
    """Search everything stored for memories that answer a question, best match first.

    `answered` is false if nothing is relevant enough.
    """
    found = await recalls.Asked(
        query=query,
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        exclude_session=exclude_session,
        roles=roles,
        kinds=kinds,
        categories=categories,
        since=since,
        until=until,
        as_of=as_of,
        valid_at=valid_at,
        metadata=metadata,
        min_relevance=min_relevance,
        min_trust=min_trust,
        namespaces=namespaces,
        top_k=top_k,
        explain=explain,
    ).recall(caller.engine, caller.namespace)
    memories = [RecalledMemory.of(memory) for memory in recalls.Recalled.of(found).memories]
    return Recalled(memories=memories, answered=found.answered, pending=found.pending, degraded=found.degraded)


@TOOLS.tool("Forget", DELETES)
async def forget(
    caller: Caller,
    id: Annotated[  # noqa: A002
        str,
        Field(
            min_length=1,
            description="Id as returned by recall; or session:ID or user:ID for everything of it",
        ),
    ],
    twins: Annotated[bool, Field(description="Also remove duplicates")] = False,
) -> Forgotten:
    """Permanently delete one memory, or everything in a session or of a user."""
    receipt = await caller.engine.forget.item(caller.namespace, id, twins=twins)
    return Forgotten(
        id=receipt.what,
        rows=receipt.rows,
        insights_left=list(receipt.insights_left),
        twins_left=list(receipt.twins_left),
    )
