"""Three small tools for agents: remember, recall, forget."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_text
from recollect.doors.mcp.schema import WHOLE
from recollect.doors.mcp.tool import ADDS, DELETES, READS, Tools

TOOLS = Tools(as_text)

DEFAULT_TOP_K = 10
MAX_TOP_K = 100


class Remembered(BaseModel):
    """The id of the stored text, and whether it was already stored."""

    id: str
    existing: bool


class RecalledMemory(BaseModel):
    """One memory, its speaker, if any, and its duplicates (`repeats`)."""

    id: str
    text: str
    score: float
    at: datetime
    speaker: str | None
    session_id: str | None
    repeats: list[str]


class Recalled(BaseModel):
    """What was recalled; `pending` passages are not embedded yet; `degraded` says why only keyword search ran."""

    memories: list[RecalledMemory]
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
    metadata: Annotated[dict[str, Any] | None, Field(description="Metadata to store with it")] = None,
) -> Remembered:
    """Store a text permanently and make it available to keyword and semantic search. Returns its id."""
    remembered = await caller.engine.remember.text(caller.namespace, text, metadata)
    return Remembered(id=f"document:{remembered.id}", existing=remembered.what == "existing")


@TOOLS.tool("Recall", READS)
async def recall(
    caller: Caller,
    query: Annotated[str, Field(min_length=1, description="Question or keywords")],
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K, description="Maximum number of results"), WHOLE] = DEFAULT_TOP_K,
) -> Recalled:
    """Search everything stored for memories that answer a question, best match first."""
    found = await caller.engine.recall.recall(caller.namespace, query, top_k=top_k)
    memories = [
        RecalledMemory(
            id=f"{memory.kind}:{memory.id}",
            text=memory.text,
            score=round(memory.score, 4),
            at=memory.at,
            speaker=memory.speaker or memory.role,
            session_id=memory.session_id,
            repeats=[f"{memory.kind}:{repeat}" for repeat in memory.repeats],
        )
        for memory in found.memories
    ]
    return Recalled(memories=memories, pending=found.pending, degraded=found.degraded)


@TOOLS.tool("Forget", DELETES)
async def forget(
    caller: Caller,
    id: Annotated[  # noqa: A002
        str,
        Field(
            min_length=1,
            description="Id of a memory, as returned by recall; or session:ID or user:ID for everything in a session "
            "or of a user",
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
