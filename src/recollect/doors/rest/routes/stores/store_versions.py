"""`/v1/memory_stores/{id}/memory_versions`: what files were before, and who changed them."""

from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import Query, Request
from pydantic import BaseModel, Field

from recollect.doors.rest import anthropic_api
from recollect.doors.rest.caller import calling
from recollect.doors.rest.routes.stores.memory_stores import (
    DEFAULT_LIMIT,
    Beta,
    Limit,
    Page,
    Since,
    Until,
    page_behind,
    place_of,
)
from recollect.doors.rest.routes.stores.store_memories import View
from recollect.doors.rest.routing import Route, Router
from recollect.flows.stores import rules
from recollect.flows.stores.files import MAX_LISTED_IN_FULL
from recollect.memory.store_files import FileVersion, Operation, VersionFilter

router = Router(tags=["memory_stores"], route_class=Route, responses=anthropic_api.responses())

_NOBODY = "Here no version has one, so there are no results with it"


class ApiActor(BaseModel):
    """Whose key was used."""

    type: Literal["api_actor"] = "api_actor"
    api_key_id: str = Field(description="The label of the key, or its id if it has none")

    @classmethod
    def of(cls, author: str | None) -> Self | None:
        """Nobody is known where no key was needed."""
        return None if author is None else cls(api_key_id=author)


class MemoryVersion(BaseModel):
    """What was done to a file, by whom, and what it was since then."""

    id: str = Field(examples=["memver_0198b2a66a357c7e9f6e2f1f5d1c9a53"])
    type: Literal["memory_version"] = "memory_version"
    memory_id: str
    memory_store_id: str
    operation: Operation
    path: str | None = Field(description="Null if it is redacted")
    content: str | None = Field(description="Null with `view=basic`, and if it is deleted or redacted")
    content_sha256: str | None
    content_size_bytes: int | None
    created_at: datetime
    created_by: ApiActor | None
    redacted_at: datetime | None
    redacted_by: ApiActor | None

    @classmethod
    def of(cls, version: FileVersion, view: str) -> Self:
        """A stored one."""
        return cls(
            id=rules.shown(rules.VERSION, version.id),
            memory_id=rules.shown(rules.FILE, version.file_id),
            memory_store_id=rules.shown(rules.STORE, version.store_id),
            operation=version.operation,
            path=version.path,
            content=version.content if view == "full" else None,
            content_sha256=version.sha256,
            content_size_bytes=version.size,
            created_at=version.created_at,
            created_by=ApiActor.of(version.author),
            redacted_at=version.redacted_at,
            redacted_by=ApiActor.of(version.redacted_by),
        )


class VersionsPage(BaseModel):
    """Versions, newest first."""

    data: list[MemoryVersion]
    next_page: str | None = Field(description="Pass it as `page`; null on the last page")


@router.get("/v1/memory_stores/{memory_store_id}/memory_versions")
async def list_store_versions(
    request: Request,
    memory_store_id: str,
    memory_id: Annotated[str | None, Query(description="Only of this file, also a deleted one")] = None,
    operation: Annotated[Operation | None, Query(description="Only of this kind")] = None,
    api_key_id: Annotated[str | None, Query(description="Only by the key of this label or id")] = None,
    session_id: Annotated[str | None, Query(description=_NOBODY)] = None,
    service_account_id: Annotated[str | None, Query(description=_NOBODY)] = None,
    limit: Limit = DEFAULT_LIMIT,
    page: Page = None,
    created_from: Since = None,
    created_until: Until = None,
    view: View = "basic",
    beta: Beta = None,
) -> VersionsPage:
    """List the versions of the files of a memory store, newest first; a page has at most 20 with their contents."""
    caller = calling(request)
    limit = min(limit, MAX_LISTED_IN_FULL) if view == "full" else limit
    file_id = None if memory_id is None else rules.parsed(rules.FILE, memory_id)
    nobody = session_id is not None or service_account_id is not None
    if nobody or (memory_id is not None and file_id is None):
        await caller.engine.stores.find(caller.namespace, memory_store_id)
        return VersionsPage(data=[], next_page=None)
    found = await caller.engine.files.versions(
        caller.namespace,
        memory_store_id,
        VersionFilter(file_id, operation, api_key_id, created_from, created_until),
        place_of(page),
        limit,
        with_content=view == "full",
    )
    shown = [MemoryVersion.of(version, view) for version in found.items]
    return VersionsPage(data=shown, next_page=page_behind(found.behind))


@router.get("/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}")
async def get_store_version(
    request: Request, memory_store_id: str, memory_version_id: str, view: View = "full", beta: Beta = None
) -> MemoryVersion:
    """Get a version of a file."""
    caller = calling(request)
    version = await caller.engine.files.version(caller.namespace, memory_store_id, memory_version_id)
    return MemoryVersion.of(version, view)


@router.post("/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}/redact")
async def redact_store_version(
    request: Request, memory_store_id: str, memory_version_id: str, beta: Beta = None
) -> MemoryVersion:
    """Erase for good what a version says the file was, but not who changed it when."""
    caller = calling(request)
    version = await caller.engine.files.redact(caller.namespace, memory_store_id, memory_version_id)
    return MemoryVersion.of(version, "full")
