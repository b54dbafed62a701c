"""`/v1/memory_stores`: memory stores as clients of the Anthropic API know them."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from fastapi import Query, Request
from pydantic import BaseModel, Field

from recollect.doors import cursors
from recollect.doors.rest import anthropic_api
from recollect.doors.rest.bodies import Body, Moment
from recollect.doors.rest.caller import calling
from recollect.doors.rest.routing import Route, Router
from recollect.flows.stores import rules
from recollect.flows.stores.stores import MAX_LISTED
from recollect.memory.stores import Store, StoreFilter

router = Router(tags=["memory_stores"], route_class=Route, responses=anthropic_api.responses())

DEFAULT_LIMIT = 20

# What clients of that API add to every request, here and in the body of none.
Beta = Annotated[str | None, Query(description="Ignored: clients send `beta=true`")]
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum results in a page")]
Page = Annotated[str | None, Query(description="The `next_page` of the page before; the first page if omitted")]
Since = Annotated[Moment | None, Query(alias="created_at[gte]", description="Only what was created then or later")]
Until = Annotated[Moment | None, Query(alias="created_at[lte]", description="Only what was created then or earlier")]

IF_ABSENT = "Return the store of this name and `metadata.user_id` instead, if there is one; not in the Anthropic API"
METADATA = "Pairs for your own use; with `user_id`, the store belongs to that user: recalled and forgotten with them"


class CreateStore(Body):
    """A new store."""

    name: str = Field(
        description="What it is called; need not be unique",
        examples=["Preferences"],
        json_schema_extra={"minLength": 1, "maxLength": rules.MAX_NAME_CHARACTERS},
    )
    description: str | None = Field(None, description="What it holds, for the agent")
    metadata: dict[str, str] | None = Field(None, description=METADATA, examples=[{"team": "travel"}])


class UpdateStore(Body):
    """What to change of a store; what is omitted or null stays."""

    name: str | None = Field(None, description="What it is called from now on")
    description: str | None = Field(None, description="What it holds; an empty string clears it")
    metadata: dict[str, str | None] | None = Field(None, description="Keys to set; null removes a key")


class MemoryStore(BaseModel):
    """A store."""

    id: str = Field(examples=["memstore_0198b2a66a357c7e9f6e2f1f5d1c9a51"])
    type: Literal["memory_store"] = "memory_store"
    name: str
    description: str
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = Field(description="Since when it takes no more changes")

    @classmethod
    def of(cls, store: Store) -> Self:
        """A stored one."""
        return cls(
            id=rules.shown(rules.STORE, store.id),
            name=store.name,
            description=store.description,
            metadata=store.metadata,
            created_at=store.created_at,
            updated_at=store.updated_at,
            archived_at=store.archived_at,
        )


class StoresPage(BaseModel):
    """Stores, newest first."""

    data: list[MemoryStore]
    next_page: str | None = Field(description="Pass it as `page`; null on the last page")


class DeletedStore(BaseModel):
    """Says that a store is gone."""

    id: str
    type: Literal["memory_store_deleted"] = "memory_store_deleted"


def place_of(page: str | None) -> tuple[datetime, UUID] | None:
    """The item behind which a page begins; None for the first."""
    return None if page is None else cursors.read(page, UUID, "next_page")


def page_behind(place: tuple[datetime, UUID] | None) -> str | None:
    """What a client asks for the next page with; None if there is none."""
    return None if place is None else cursors.write(*place)


@router.post("/v1/memory_stores")
async def create_memory_store(
    request: Request,
    body: CreateStore,
    if_absent: Annotated[bool, Query(description=IF_ABSENT)] = False,
    beta: Beta = None,
) -> MemoryStore:
    """Create a memory store: a folder of text files that every other interface can recall."""
    caller = calling(request)
    store = await caller.engine.stores.create(
        caller.namespace, body.name, body.description or "", body.metadata, if_absent=if_absent
    )
    return MemoryStore.of(store)


@router.get("/v1/memory_stores")
async def list_memory_stores(
    request: Request,
    include_archived: Annotated[bool, Query(description="Archived ones, too")] = False,
    limit: Limit = DEFAULT_LIMIT,
    page: Page = None,
    created_from: Since = None,
    created_until: Until = None,
    name: Annotated[str | None, Query(description="Only those of this name; not in the Anthropic API")] = None,
    user_id: Annotated[str | None, Query(description="Only this user's; not in the Anthropic API")] = None,
    beta: Beta = None,
) -> StoresPage:
    """List memory stores, newest first."""
    caller = calling(request)
    chosen = StoreFilter(include_archived, created_from, created_until, name, user_id)
    found = await caller.engine.stores.newest(caller.namespace, chosen, place_of(page), limit)
    return StoresPage(data=list(map(MemoryStore.of, found.items)), next_page=page_behind(found.behind))


@router.get("/v1/memory_stores/{memory_store_id}")
async def get_memory_store(request: Request, memory_store_id: str, beta: Beta = None) -> MemoryStore:
    """Get a memory store."""
    caller = calling(request)
    return MemoryStore.of(await caller.engine.stores.find(caller.namespace, memory_store_id))


@router.post("/v1/memory_stores/{memory_store_id}")
async def update_memory_store(
    request: Request, memory_store_id: str, body: UpdateStore, beta: Beta = None
) -> MemoryStore:
    """Change the name, description or metadata of a memory store."""
    caller = calling(request)
    store = await caller.engine.stores.change(
        caller.namespace, memory_store_id, body.name, body.description, body.metadata
    )
    return MemoryStore.of(store)


@router.delete("/v1/memory_stores/{memory_store_id}")
async def delete_memory_store(request: Request, memory_store_id: str, beta: Beta = None) -> DeletedStore:
    """Forget a memory store with all its memories and their versions."""
    caller = calling(request)
    await caller.engine.stores.delete(caller.namespace, memory_store_id)
    return DeletedStore(id=memory_store_id)


@router.post("/v1/memory_stores/{memory_store_id}/archive")
async def archive_memory_store(request: Request, memory_store_id: str, beta: Beta = None) -> MemoryStore:
    """Archive a memory store, for good: nothing in it can be created or changed any more."""
    caller = calling(request)
    return MemoryStore.of(await caller.engine.stores.archive(caller.namespace, memory_store_id))
