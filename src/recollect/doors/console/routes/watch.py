"""What happens to memories: the last changes, and new ones as they come."""

import json

from starlette.responses import Response, StreamingResponse

from recollect import checks
from recollect.doors.changes import EVENT_STREAM, STREAM_HEADERS, Change, event, streamed, while_admitted
from recollect.doors.console import links, rendering
from recollect.doors.console.visit import Visit, get
from recollect.flows.feed import Page
from recollect.flows.kinds import registry
from recollect.flows.kinds.target import SESSION
from recollect.memory.changes import EVENTS

PER_PAGE = 50

# Then the browser comes again by itself, and is let in only if its key is still valid.
STREAM_SECONDS = 120.0

# Of the number of a change; more are none of ours.
MAX_DIGITS = 19

KINDS = sorted({*registry.in_feed(), *registry.items(), SESSION})


async def watch(visit: Visit) -> Response:
    """The newest changes, and a way back to older ones."""
    wanted = filters(visit)
    before = visit.number_asked("before", 0, 0, checks.LARGEST_ID) or None
    page = await visit.engine.feed.newest(visit.namespace, before, PER_PAGE, **wanted)
    return visit.page(
        "watch.html",
        changes=list(map(Change.of, page.entries)),
        link_of=link_of,
        page=page,
        before=before,
        wanted=wanted,
        choices={
            "kinds": [("", "every kind"), *((kind, kind) for kind in KINDS)],
            "events": [("", "every event"), *((each, each) for each in EVENTS)],
        },
    )


async def stream(visit: Visit) -> Response:
    """New changes as server-sent events, each an entry of the page's list; those that are not wanted have no data."""
    wanted = filters(visit)
    last = visit.request.headers.get("last-event-id", "")
    since = (
        int(last)
        if last.isdecimal() and len(last) < MAX_DIGITS
        else visit.number_asked("since", 0, 0, checks.LARGEST_ID)
    )

    def encode(page: Page) -> str:
        events: list[str] = []
        for change in map(Change.of, page.entries):
            if all(value in (None, getattr(change, name)) for name, value in wanted.items()):
                shown = rendering.fragment_text("change.html", change=change, link_of=link_of)
                events.append(event(change.number, json.dumps(shown)))
            else:
                events.append(f"id: {change.number}\n\n")
        return "".join(events)

    first = await visit.engine.feed.page(visit.namespace, since)
    events = streamed(visit.engine.feed, visit.namespace, first, encode, STREAM_SECONDS)
    # Until the reader signs out or the key ends: the browser then asks again, and is refused.
    admitted = while_admitted(events, visit.is_still_admitted)
    return StreamingResponse(admitted, media_type=EVENT_STREAM, headers=STREAM_HEADERS)


def filters(visit: Visit) -> dict[str, str | None]:
    """The kind and the event that are looked for."""
    kind, wanted = visit.asked("kind") or None, visit.asked("event") or None
    if kind is not None:
        checks.one_of(kind, KINDS, "kind")
    if wanted is not None:
        checks.one_of(wanted, EVENTS, "event")
    return {"kind": kind, "event": wanted}


def link_of(change: Change) -> str | None:
    """The page of what was changed; none if it is gone. A turn is found by its first message."""
    if change.content is None:
        return None
    if "messages" in change.content:
        return links.item("message", change.content["messages"][0]["id"], change.item_id)
    return links.item(change.kind, change.item_id)


ROUTES = [get("/console/watch", watch), get("/console/watch/stream", stream)]
