"""`GET /changes`: what happened to memories, as pages or as a stream of server-sent events."""

from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import StreamingResponse

from recollect import origin
from recollect.checks import LARGEST_ID
from recollect.doors.changes import EVENT_STREAM, STREAM_HEADERS, ChangesPage, encoded, streamed, while_admitted
from recollect.doors.rest.caller import calling
from recollect.doors.rest.problems import responses
from recollect.doors.rest.routing import Route, Router
from recollect.flows import feed

router = Router(tags=["changes"], route_class=Route)


@router.get(
    "/changes",
    response_model=ChangesPage,
    responses=responses(409)
    | {200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": "id: 12\ndata: {...}\n\n"}}}},
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
    is_stream = EVENT_STREAM in accept
    begin = last_event_id if is_stream and last_event_id is not None else since
    page = await caller.engine.feed.page(caller.namespace, begin, limit)
    if is_stream:
        key_id = origin.current().key_id
        events = while_admitted(
            streamed(caller.engine.feed, caller.namespace, page, encoded),
            lambda: caller.engine.access.is_still_admitted(caller.namespace, key_id),
        )
        return StreamingResponse(events, media_type=EVENT_STREAM, headers=STREAM_HEADERS)
    return ChangesPage.of(page)
