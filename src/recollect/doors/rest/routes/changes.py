"""`GET /changes`: what happened to memories, as pages or as a stream of server-sent events."""

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import StreamingResponse

from recollect.checks import LARGEST_ID
from recollect.doors.caller import Caller
from recollect.doors.changes import Change, ChangesPage
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.errors import RecollectError
from recollect.flows import feed
from recollect.flows.feed import Page

router = Router(tags=["changes"], route_class=Route)

EVENTS = "text/event-stream"

# Proxies and clients take a stream that is silent for longer as dead.
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = ": nothing new\n\n"

# A proxy that collects an answer before it passes it on would keep the events.
_HEADERS = {"X-Accel-Buffering": "no"}


@router.get(
    "/changes",
    response_model=ChangesPage,
    responses=responses(409)
    | {200: {"content": {EVENTS: {"schema": {"type": "string"}, "example": "id: 12\ndata: {...}\n\n"}}}},
)
async def list_changes(
    request: Request,
    since: Annotated[int, Query(ge=0, le=LARGEST_ID, description="The number of the last change that you have")] = 0,
    limit: Annotated[int, Query(ge=1, le=feed.MAX_LIMIT, description="Maximum number; a stream has no end")] = (
        feed.DEFAULT_LIMIT
    ),
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[
        int | None,
        Header(ge=0, le=LARGEST_ID, description="Resumes an interrupted stream after this change, instead of `since`"),
    ] = None,
) -> ChangesPage | StreamingResponse:
    """Everything that happened to memories after a number, oldest first.

    With `Accept: text/event-stream`, a stream that sends new changes as they happen: each event has a change as its
    data and its number as its id.
    """
    caller = calling(request)
    is_stream = EVENTS in accept
    begin = last_event_id if is_stream and last_event_id is not None else since
    page = await caller.engine.feed.page(caller.namespace, begin, limit)
    if is_stream:
        return StreamingResponse(_events(caller, page), media_type=EVENTS, headers=_HEADERS)
    return ChangesPage.of(page)


async def _events(caller: Caller, first: Page) -> AsyncIterator[str]:
    """Ends with the server, and when the database does not answer: the client comes again, and is told why."""
    yield _encoded(first) or HEARTBEAT
    pages = caller.engine.feed.follow(caller.namespace, first.next, HEARTBEAT_SECONDS)
    with suppress(RecollectError):
        async with aclosing(pages):
            async for page in pages:
                yield _encoded(page) or HEARTBEAT


def _encoded(page: Page) -> str:
    changes = map(Change.of, page.entries)
    return "".join(f"id: {change.number}\ndata: {change.model_dump_json()}\n\n" for change in changes)
