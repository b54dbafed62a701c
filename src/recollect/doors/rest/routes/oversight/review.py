"""`/review`: what screening has found, for a person with a key of role admin to release or to forget."""

from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field

from recollect.doors import reviews
from recollect.doors.rest.bodies import Body
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.doors.reviews import ReviewedItems
from recollect.flows.defence.review import MAX_LISTED

router = Router(prefix="/review", tags=["review"], route_class=Route, responses=responses())


class Decision(Body):
    """Which item."""

    item: str = Field(description="Its name as the list has it", examples=["message:ID"])


class Released(BaseModel):
    """An item that is recalled again."""

    item: str
    state: Literal["released"] = "released"


class ForgottenItem(BaseModel):
    """Rows deleted, by kind."""

    item: str
    rows: dict[str, int]


@router.get("")
async def list_held(
    request: Request,
    state: Annotated[
        Literal["held", "warned", "released"] | None, Query(description="Only these; all that wait if omitted")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
    cursor: Annotated[str | None, Query(description="`next` of the previous page")] = None,
) -> ReviewedItems:
    """Suspicious items, the newest first. Their texts may try to steer a model: show them only to people."""
    caller = calling(request)
    page = await caller.engine.review.page(caller.namespace, state, limit, reviews.read(cursor))
    return ReviewedItems.of(page)


@router.post("/release", responses=responses(404))
async def release_item(request: Request, body: Decision) -> Released:
    """Release an item, so that it can be recalled. It stays released until its text changes."""
    caller = calling(request)
    await caller.engine.review.release(caller.namespace, body.item)
    return Released(item=body.item)


@router.post("/forget", responses=responses(404))
async def forget_item(request: Request, body: Decision) -> ForgottenItem:
    """Delete an item of the list for good."""
    caller = calling(request)
    receipt = await caller.engine.review.forget(caller.namespace, body.item)
    return ForgottenItem(item=body.item, rows=dict(receipt.rows))
