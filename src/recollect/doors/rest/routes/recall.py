"""`POST /recall`: one search over everything that is stored, with every filter."""

from typing import Annotated, Any, Final

from fastapi import Request
from pydantic import Field, WithJsonSchema
from pydantic.config import JsonDict

from recollect.doors.recalls import DEFAULT_TOP_K, Asked, Recalled
from recollect.doors.rest.bodies import DATE_TIME, Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows.kinds import registry
from recollect.flows.search import relevance
from recollect.flows.search.recall import MAX_HALF_LIFE_DAYS, MAX_NAMESPACES, MAX_TOP_K
from recollect.trust import Trust

router = Router(tags=["recall"], route_class=Route, responses=responses())

# The engine checks these, in the same words at every door; the document says what it accepts.
MomentText = Annotated[str, DATE_TIME]
Floor = Annotated[
    float | str,
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": [relevance.DEFAULT]}]}
    ),
]
HalfLife = Annotated[float, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MAX_HALF_LIFE_DAYS})]
SOME_TEXT: Final[JsonDict] = {"minLength": 1}
SOME_ITEMS: Final[JsonDict] = {"minItems": 1}
FLOOR = f'Only results with at least this relevance, from 0 to 1; "{relevance.DEFAULT}" for the recommended floor'

AS_OF = "Answer as this memory would have answered at this moment in the past"
INCLUDE_PINNED = "Add the pinned memories of the user, agent or session in `pinned`, beside the results"
VALID_AT = "Only what is true in the world at this time, where `valid_from` or `valid_until` is set"

HALF_LIFE = (
    "Rank by age, too: scores halve each time an item gets this many days older, except those of pinned memories. "
    "No decay if omitted"
)

NAMESPACES: Any = Field(
    None,
    description="Search these together, in one ranking, instead of the key's own namespace. "
    "Others than its own must be granted to the key",
    examples=[["support", "handbook"]],
    json_schema_extra={**SOME_ITEMS, "maxItems": MAX_NAMESPACES},
)


class RecallRequest(Body):
    """A question, and which memories to search; omitted filters match everything."""

    query: str = Field(description="A question or keywords", examples=["What did the doctor advise?"])
    user_id: str | None = Field(None, description="Only this user's", examples=["user-42"], json_schema_extra=SOME_TEXT)
    agent_id: str | None = Field(None, description="Only this agent's", json_schema_extra=SOME_TEXT)
    session_id: str | None = Field(None, description="Only this session", json_schema_extra=SOME_TEXT)
    exclude_session: str | None = Field(
        None, description="Not this session, such as the current one", json_schema_extra=SOME_TEXT
    )
    roles: list[str] | None = Field(
        None, description="Only messages of these roles", examples=[["user"]], json_schema_extra=SOME_ITEMS
    )
    kinds: list[str] | None = Field(
        None,
        description=f"Only these kinds: {', '.join(registry.recalled())}",
        examples=[["message"]],
        json_schema_extra=SOME_ITEMS,
    )
    categories: list[str] | None = Field(
        None,
        description="Only long-term memories of these categories",
        examples=[["preference"]],
        json_schema_extra=SOME_ITEMS,
    )
    since: MomentText | None = Field(
        None, description="Said or stored at this time or later; UTC if no time zone is given"
    )
    until: MomentText | None = Field(None, description="Said or stored at this time or earlier")
    as_of: MomentText | None = Field(None, description=AS_OF)
    valid_at: MomentText | None = Field(None, description=VALID_AT)
    metadata: dict[str, Any] | None = Field(None, description="Only items whose metadata contains this")
    min_relevance: Floor | None = Field(None, description=FLOOR)
    top_k: int = Field(
        DEFAULT_TOP_K,
        description="Maximum number of results",
        json_schema_extra={"minimum": 1, "maximum": MAX_TOP_K},
    )
    token_budget: int | None = Field(
        None, description="Maximum total number of tokens in all texts", json_schema_extra={"minimum": 1}
    )
    explain: bool = Field(False, description="Add how each score came about")
    include_pinned: bool = Field(False, description=INCLUDE_PINNED)
    now: MomentText | None = Field(
        None, description='What "yesterday" in the question counts from; the present if omitted'
    )
    half_life_days: HalfLife | None = Field(None, description=HALF_LIFE)
    min_trust: Trust | None = Field(
        None, description="Only what comes from this class or a more trusted one; operator is the most trusted"
    )
    namespaces: list[str] | None = NAMESPACES


@router.post("/recall")
async def recall(request: Request, body: RecallRequest) -> Recalled:
    """Search everything that is stored by keyword and semantic search combined, best match first."""
    caller = calling(request)
    return Recalled.of(await Asked(**dict(body)).recall(caller.engine, caller.namespace))
