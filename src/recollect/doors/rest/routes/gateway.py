"""The memory gateway: `/memories/*` and `/resources`, for users who bring their key in the body."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from fastapi import Header, Request, Response
from fastapi.routing import APIRoute
from pydantic import AliasChoices, BaseModel, Field, SecretStr

from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.doors.recalls import floor, floor_of_text
from recollect.doors.rest import answered, degraded
from recollect.doors.rest.bodies import Body, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.document import WITHOUT_KEY
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routes.recall import AS_OF, FLOOR, Floor
from recollect.doors.rest.routing import Route, Router
from recollect.errors import AccessDenied
from recollect.flows import gateway
from recollect.flows.accounts.access import NOT_ADMITTED
from recollect.flows.chat_ids import CHAT
from recollect.flows.gateway import Owner, Said
from recollect.memory.resources import MAX_URI_CHARACTERS
from recollect.origin import Reach, acting

router = Router(tags=["gateway"], route_class=Route)

# What is written here is a user's own, and not of whoever has the key of the namespace.
DOOR = "gateway"

MAX_CONVERSATION_CHARACTERS = gateway.MAX_SESSION_CHARACTERS - len(CHAT)
MAX_KEY_CHARACTERS = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Name = Annotated[str, Field(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]
SessionId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=gateway.MAX_SESSION_CHARACTERS,
        description="The chat: `chat:` and the id of the conversation",
        examples=["chat:7f3a"],
    ),
]


class Identified(Body):
    """The user's credentials, app and project."""

    user_id: Annotated[Name, Field(examples=["anna"])]
    user_key: Annotated[SecretStr, Field(min_length=1, max_length=MAX_KEY_CHARACTERS, examples=["uk_..."])]
    app_id: Annotated[Name, Field(description="Memories of other apps are not visible")] = gateway.DEFAULT
    project_id: Annotated[Name, Field(description="Memories of other projects are not visible")] = gateway.DEFAULT


MAX_SCOPES = 10
INCLUDE_PINNED = "Add the user's pinned memories in `pinned`, whatever the scopes are"


class GatewaySearch(Identified):
    """A query and the scopes to search."""

    query: str = Field(min_length=1, description="A prompt or question", examples=["When does she like to travel?"])
    scope: list[Literal["current_chat", "resources", "all_user_memory"]] = Field(
        min_length=1,
        max_length=MAX_SCOPES,
        description="One or more of: the chat `chat:<conversation_id>`; the user's resources; "
        "everything that belongs to the user in the app and project",
        examples=[["current_chat", "resources"]],
    )
    conversation_id: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_CONVERSATION_CHARACTERS,
        description="The chat that `current_chat` refers to; required only for that scope",
        examples=["7f3a"],
    )
    top_k: int = Field(gateway.DEFAULT_TOP_K, ge=1, le=gateway.MAX_TOP_K, description="Maximum number of results")
    min_relevance: Floor | None = Field(None, description=FLOOR)
    as_of: Moment | None = Field(None, description=AS_OF)
    include_pinned: bool = Field(False, description=INCLUDE_PINNED)


class GatewayResult(BaseModel):
    """One result, with its best-matching passage."""

    id: str
    session_id: str | None = Field(description="The chat it comes from")
    text: str
    score: float = Field(description="Similarity to the query, from 0 to 1; the order also depends on other signals")
    source_scope: str = Field(description="The narrowest requested scope it was found in")
    resource_uri: str | None = Field(description="The resource it comes from")
    raw: dict[str, Any] = Field(description="Further fields: kind, role, timestamp, title, metadata")

    @classmethod
    def of(cls, found: gateway.Found, owner: gateway.Owner) -> Self:
        """A result as the contract has it."""
        memory, resource = found.memory, found.resource
        raw = {
            "kind": memory.kind,
            "user_id": memory.user_id,
            "app_id": owner.app_id,
            "project_id": owner.project_id,
            "role": memory.role,
            "sender_id": memory.speaker,
            "timestamp": (memory.at - _EPOCH) // timedelta(milliseconds=1),
            "title": None if resource is None else resource.title,
            "category": memory.category,
            "metadata": memory.metadata,
        }
        return cls(
            id=memory.id,
            session_id=found.session_id,
            text=memory.text,
            score=round(memory.similarity, 4),
            source_scope=found.source_scope,
            resource_uri=None if resource is None else resource.uri,
            raw={name: value for name, value in raw.items() if value is not None},
        )


class GatewayPinned(BaseModel):
    """A memory that the user has pinned."""

    id: str
    text: str


class GatewayResults(BaseModel):
    """The results, best match first."""

    results: list[GatewayResult]
    pinned: list[GatewayPinned] | None = Field(
        None, description="Newest first, within a token budget; only if asked for", exclude_if=lambda it: it is None
    )


class SaidMessage(Body):
    """One message of a chat."""

    sender_id: Annotated[Name, Field(description="Who said it", examples=["anna"])]
    role: Literal["user", "assistant"]
    timestamp: int = Field(
        ge=1,
        le=gateway.LAST_TIMESTAMP,
        description="Time in milliseconds since 1970 (UTC)",
        examples=[1780000000000],
    )
    content: str = Field(min_length=1, examples=["I would rather fly in the morning than at night."])


class GatewayAdd(Identified):
    """Messages to append to a chat, all or none."""

    session_id: SessionId
    messages: list[SaidMessage] = Field(min_length=1, max_length=gateway.MAX_MESSAGES)


class GatewayAdded(BaseModel):
    """The number of new messages; the others were already in the chat, from an earlier attempt."""

    session_id: str
    added: int
    duplicates: int
    stored_as: str = Field(description="The id of this chat outside the gateway; only the gateway writes to it")


class GatewayFlush(Identified):
    """The chat to flush."""

    session_id: SessionId


class GatewayFlushed(BaseModel):
    """Everything added to the chat is embedded; `degraded` if only keyword search finds it."""

    session_id: str
    status: Literal["flushed", "degraded"]


class NewResource(Identified):
    """A text under a URI. The URI is only a name: nothing is fetched from it."""

    resource_uri: str = Field(
        min_length=1, max_length=MAX_URI_CHARACTERS, examples=["https://example.org/handbook#travel"]
    )
    text: str = Field(
        min_length=1,
        validation_alias=AliasChoices("text", "content"),
        description="Its text; `content` is an alias of this field",
        examples=["Flights are booked two weeks ahead."],
    )
    title: str | None = Field(None, description="Also searched", examples=["Travel handbook"])
    metadata: dict[str, Any] | None = Field(None, description="Metadata to store with it")


class StoredResource(BaseModel):
    """The stored resource. `pending` means that it is not embedded yet: only keyword search finds it."""

    id: str
    resource_uri: str
    created_at: datetime
    updated_at: datetime
    embedding_status: Literal["success", "pending"]


@router.post(
    "/memories/search",
    responses=responses() | {200: {"headers": degraded.DOCUMENTED | answered.DOCUMENTED}},
    openapi_extra=WITHOUT_KEY,
)
async def search_user_memories(
    request: Request,
    body: GatewaySearch,
    response: Response,
    min_relevance: Annotated[
        str | None,
        Header(alias="X-Recollect-Min-Relevance", description="The field `min_relevance`, for clients of any gateway"),
    ] = None,
    include_pinned: Annotated[
        bool,
        Header(alias="X-Recollect-Include-Pinned", description="The field `include_pinned`, for the same clients"),
    ] = False,
) -> GatewayResults:
    """Search one or more scopes of a user's memory by semantic and keyword search combined."""
    caller = calling(request)
    owner = await _owner(request, body)
    least = floor_of_text(min_relevance) if body.min_relevance is None else floor(body.min_relevance)
    found = await caller.engine.gateway.search(
        owner,
        body.query,
        body.scope,
        conversation_id=body.conversation_id,
        top_k=body.top_k,
        min_relevance=least,
        as_of=body.as_of,
    )
    degraded.tell(response, found.degraded)
    answered.tell(response, found, least)
    pinned = None
    if body.include_pinned or include_pinned:
        kept = await caller.engine.gateway.pinned(owner, body.as_of)
        pinned = [GatewayPinned(id=str(memory.id), text=memory.text) for memory in kept.memories]
    return GatewayResults(results=[GatewayResult.of(each, owner) for each in found], pinned=pinned)


@router.post("/memories/add", responses=responses(409), openapi_extra=WITHOUT_KEY)
async def add_chat_messages(request: Request, body: GatewayAdd) -> GatewayAdded:
    """Append messages to a chat. Sending the same messages again is safe: each is stored once."""
    caller = calling(request)
    said = [Said(each.sender_id, each.role, each.timestamp, each.content) for each in body.messages]
    owner = await _owner(request, body)
    with acting(DOOR, owner.user_id, reach=Reach(owner.namespace)):
        added = await caller.engine.gateway.add(owner, body.session_id, said)
    return GatewayAdded(
        session_id=body.session_id, added=added.added, duplicates=added.duplicates, stored_as=added.stored_as
    )


@router.post(
    "/memories/flush",
    responses=responses(404) | {200: {"headers": degraded.DOCUMENTED}},
    openapi_extra=WITHOUT_KEY,
)
async def flush_chat(request: Request, body: GatewayFlush, response: Response) -> GatewayFlushed:
    """Wait until everything added to a chat is embedded, so that semantic search finds it."""
    caller = calling(request)
    by_words = await caller.engine.gateway.flush(await _owner(request, body), body.session_id)
    degraded.tell(response, by_words)
    return GatewayFlushed(session_id=body.session_id, status="flushed" if by_words is None else "degraded")


@router.post(
    "/resources",
    status_code=201,
    responses=responses() | {200: {"model": StoredResource, "description": "It replaced an earlier text"}},
    openapi_extra=WITHOUT_KEY,
)
async def put_resource(request: Request, body: NewResource, response: Response) -> StoredResource:
    """Store a text under a URI, for the scope `resources`; storing it again replaces it."""
    caller = calling(request)
    owner = await _owner(request, body)
    with acting(DOOR, owner.user_id, reach=Reach(owner.namespace)):
        put = await caller.engine.gateway.put_resource(owner, body.resource_uri, body.text, body.title, body.metadata)
    if put.resource.replaced:
        response.status_code = 200
    degraded.tell(response, put.degraded)
    return StoredResource(
        id=str(put.resource.id),
        resource_uri=put.resource.uri,
        created_at=put.resource.created_at,
        updated_at=put.resource.updated_at,
        embedding_status=put.embedding_status,
    )


# Every route here has its user's key in the body.
WITH_USER_KEY = frozenset(route.path for route in router.routes if isinstance(route, APIRoute))


async def _owner(request: Request, body: Identified) -> Owner:
    """Whom the credential in the body names. The gate lets these routes in without a key, but not with another's."""
    caller = calling(request)
    user = await caller.engine.access.user_of(body.user_id, body.user_key.get_secret_value())
    if caller.namespace not in (None, user.namespace):
        raise AccessDenied(NOT_ADMITTED)
    request.state.namespace, request.state.author, request.state.door = user.namespace, user.user_id, DOOR
    await caller.engine.quotas.admit_user(user.namespace, user.user_id)
    return Owner.of(user, body.app_id, body.project_id)
