"""`/v1/memory_stores/{id}/memories`: text files at paths, as clients of the Anthropic API know them."""

from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import Query, Request
from pydantic import BaseModel, Field

from recollect.doors import cursors
from recollect.doors.rest import anthropic_api
from recollect.doors.rest.bodies import Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.routes.stores.memory_stores import DEFAULT_LIMIT, Beta, Limit, Page
from recollect.doors.rest.routing import Route, Router
from recollect.flows.stores import rules
from recollect.flows.stores.files import MAX_DEPTH, MAX_LISTED_IN_FULL, Edit
from recollect.memory.store_files import StoredFile

router = Router(tags=["memory_stores"], route_class=Route, responses=anthropic_api.responses())

SHA256 = "^[0-9a-f]{64}$"

View = Annotated[Literal["basic", "full"], Query(description="`full` with contents, `basic` without")]


class CreateStoreMemory(Body):
    """A new file."""

    path: str = Field(description="Where it is in the store", examples=["/projects/notes.md"])
    content: str | None = Field(description="Its text; may be empty", examples=["Anna flies in the morning."])


class Precondition(Body):
    """What must be so, or the update is refused."""

    type: Literal["content_sha256"]
    content_sha256: str = Field(pattern=SHA256, description="The hash of the present content")


class UpdateStoreMemory(Body):
    """What to change of a file; what is omitted or null stays."""

    content: str | None = Field(None, description="Its text from now on")
    path: str | None = Field(None, description="Its path from now on")
    precondition: Precondition | None = Field(None, description="Update only if this is so")


class StoreMemory(BaseModel):
    """A file."""

    id: str = Field(examples=["mem_0198b2a66a357c7e9f6e2f1f5d1c9a52"])
    type: Literal["memory"] = "memory"
    memory_store_id: str
    memory_version_id: str = Field(description="The version that it is now")
    path: str
    content: str | None = Field(description="Null with `view=basic`")
    content_sha256: str
    content_size_bytes: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, file: StoredFile, view: str) -> Self:
        """A stored one."""
        return cls(
            id=rules.shown(rules.FILE, file.id),
            memory_store_id=rules.shown(rules.STORE, file.store_id),
            memory_version_id=rules.shown(rules.VERSION, file.version_id),
            path=file.path,
            content=file.content if view == "full" else None,
            content_sha256=file.sha256,
            content_size_bytes=file.size,
            created_at=file.created_at,
            updated_at=file.updated_at,
        )


class MemoryPrefix(BaseModel):
    """A folder, in place of what is in it."""

    type: Literal["memory_prefix"] = "memory_prefix"
    path: str = Field(examples=["/projects/"])


class MemoriesPage(BaseModel):
    """Files and folders in the order of their paths."""

    data: list[StoreMemory | MemoryPrefix]
    next_page: str | None = Field(description="Pass it as `page`; null on the last page")


class DeletedStoreMemory(BaseModel):
    """Says that a file is gone."""

    id: str
    type: Literal["memory_deleted"] = "memory_deleted"


@router.post("/v1/memory_stores/{memory_store_id}/memories")
async def create_store_memory(
    request: Request, memory_store_id: str, body: CreateStoreMemory, view: View = "basic", beta: Beta = None
) -> StoreMemory:
    """Create a file at a path where there is none."""
    caller = calling(request)
    file = await caller.engine.files.create(caller.namespace, memory_store_id, body.path, body.content or "")
    return StoreMemory.of(file, view)


@router.get("/v1/memory_stores/{memory_store_id}/memories")
async def list_store_memories(
    request: Request,
    memory_store_id: str,
    path_prefix: Annotated[str, Query(description="Only below this folder; it ends with a slash")] = "/",
    depth: Annotated[
        int, Query(ge=0, le=MAX_DEPTH, description="Below this many levels, folders instead of files; 0 for no limit")
    ] = 0,
    limit: Limit = DEFAULT_LIMIT,
    page: Page = None,
    view: View = "basic",
    path: Annotated[str | None, Query(description="Only the file at this path; not in the Anthropic API")] = None,
    beta: Beta = None,
) -> MemoriesPage:
    """List the files of a memory store; a page has at most 20 with their contents."""
    caller = calling(request)
    if path is not None:
        file = await caller.engine.files.find_at(caller.namespace, memory_store_id, path)
        return MemoriesPage(data=[] if file is None else [StoreMemory.of(file, view)], next_page=None)
    limit = min(limit, MAX_LISTED_IN_FULL) if view == "full" else limit
    found = await caller.engine.files.listing(
        caller.namespace,
        memory_store_id,
        path_prefix,
        depth,
        "" if page is None else cursors.read_text(page, "next_page"),
        limit,
        with_content=view == "full",
    )
    shown = [MemoryPrefix(path=each) if isinstance(each, str) else StoreMemory.of(each, view) for each in found.items]
    return MemoriesPage(data=shown, next_page=None if found.behind is None else cursors.write_text(found.behind))


@router.get("/v1/memory_stores/{memory_store_id}/memories/{memory_id}")
async def get_store_memory(
    request: Request, memory_store_id: str, memory_id: str, view: View = "full", beta: Beta = None
) -> StoreMemory:
    """Get a file."""
    caller = calling(request)
    return StoreMemory.of(await caller.engine.files.find(caller.namespace, memory_store_id, memory_id), view)


@router.post("/v1/memory_stores/{memory_store_id}/memories/{memory_id}")
async def update_store_memory(
    request: Request,
    memory_store_id: str,
    memory_id: str,
    body: UpdateStoreMemory,
    view: View = "basic",
    beta: Beta = None,
) -> StoreMemory:
    """Change the content or the path of a file."""
    caller = calling(request)
    expected = None if body.precondition is None else body.precondition.content_sha256
    edit = Edit(body.path, body.content, expected)
    return StoreMemory.of(await caller.engine.files.change(caller.namespace, memory_store_id, memory_id, edit), view)


@router.delete("/v1/memory_stores/{memory_store_id}/memories/{memory_id}")
async def delete_store_memory(
    request: Request,
    memory_store_id: str,
    memory_id: str,
    expected_content_sha256: Annotated[
        str | None, Query(pattern=SHA256, description="Delete it only if this is the hash of its content")
    ] = None,
    beta: Beta = None,
) -> DeletedStoreMemory:
    """Delete a file. Its versions stay until the store is deleted, or they are redacted or forgotten."""
    caller = calling(request)
    await caller.engine.files.delete(caller.namespace, memory_store_id, memory_id, expected_content_sha256)
    return DeletedStoreMemory(id=memory_id)
