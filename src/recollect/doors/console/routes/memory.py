"""One memory: what it says and said, where it comes from, what became of it, and the forms to change it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from recollect import origin, tasks
from recollect.doors.console import diffs, excerpts, problems, rendering
from recollect.doors.console.rendering import field_time, pretty
from recollect.doors.console.routes.memories import FIELDS, days_of, time_of
from recollect.doors.console.visit import Page, Visit, get, post
from recollect.doors.recalls import metadata_of_text
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.lineage import Event, Story
from recollect.flows.long_term.memory_requests import Change, metadata_patch
from recollect.flows.long_term.memory_results import Written
from recollect.memory.memories import CATEGORIES, StoredMemory

# Of its texts: what is read to compare them, and what is shown and can be edited here.
READ_CHARACTERS = 300_000
SHOWN_CHARACTERS = 10_000
EVENTS_AT_ONCE = 30
# Of one page: characters that are compared, bytes of what differs, and bytes of the text.
COMPARED_CHARACTERS = 600_000
CHANGED_BYTES = 60_000
TEXT_BYTES = 40_000

DONE = {
    "created": "The memory is stored.",
    "replaced": "Replaced: this memory is stored in the place of the other one.",
    "existing": "A memory that says this was there already: this one. Nothing was stored.",
    "merged": "A memory that says this was there already: this one. It got what was new in the form.",
    "changed": "The change is stored.",
    "same": "Nothing was different, so nothing was changed.",
    "pinned": "The memory is pinned: it belongs in every prompt of its scope.",
    "unpinned": "The memory is no longer pinned.",
    "expiry": "When it expires is changed.",
    "undone": "The memory is in force again.",
    "deleted": "The memory is deleted. What happened to it stays, without its texts.",
}
DEGRADED = "It could not be embedded yet, so only keyword search finds it for now."

_LINE_ENDS = re.compile("\r\n?")


class Told(NamedTuple):
    """Something that happened, and how text and metadata changed; None where that is not shown."""

    event: Event
    pieces: Sequence[diffs.Piece] | None
    metadata: Sequence[diffs.Piece] | None


async def memory(visit: Visit) -> Response:
    """The page of a memory, also of one that is gone."""
    done = DONE.get(visit.asked("done"))
    return await shown(visit, visit.asked("id"), done=done and f"{done} {DEGRADED * bool(visit.asked('degraded'))}")


async def shown(
    visit: Visit,
    memory_id: str,
    status: int = 200,
    problem: Exception | None = None,
    done: str | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    """The page, with what went wrong with a form on it, and what had been typed there."""
    if not memory_id:
        raise Invalid("The address names no memory: open one from the list")
    story = await visit.engine.lineage.of_memory(visit.namespace, memory_id, READ_CHARACTERS)
    is_there = story.state in ("in_force", "superseded")
    stored = await visit.engine.memories.get(visit.namespace, memory_id) if is_there else None
    as_of = time_of(visit.asked("as_of"), "as_of")
    then = None if as_of is None else await known_then(visit, memory_id, as_of)
    earlier = visit.number_asked("earlier", 0, 0, 1000)
    last = max(len(story.events) - earlier, 0)
    first = max(last - EVENTS_AT_ONCE, 0)
    said = stored if as_of is None else then
    text = "" if said is None else said.text
    fitting = excerpts.fitting(text[:SHOWN_CHARACTERS], TEXT_BYTES).characters
    return visit.page(
        "memory.html",
        status,
        id=story.name.removeprefix(f"{MEMORY}:"),
        story=story,
        memory=stored,
        as_of=as_of,
        then=then,
        since_then=None if then is None or stored is None else await compared(then.text, stored.text),
        text=text[:fitting],
        left_out=len(text) - fitting,
        question=visit.asked("q"),
        events=await told(story.events[first:last]),
        earlier=None if first == 0 else len(story.events) - first,
        began=next((event for event in story.events if event.event == "stored"), None),
        imported=next((event for event in story.events if event.event == "imported"), None),
        reworded=reworded(story, as_of),
        ended=ending(story),
        ended_by=next((event.by for event in reversed(story.events) if event.event == "superseded"), None),
        problem=problem,
        done=done,
        what_was_done=visit.asked("done"),
        typed=typed,
        category_choices=[*zip(CATEGORIES, CATEGORIES, strict=True)],
        is_editable=stored is not None and len(stored.text) <= SHOWN_CHARACTERS,
    )


async def known_then(visit: Visit, memory_id: str, as_of: datetime) -> StoredMemory | None:
    """The memory as it was at a time; None if it was not known then, or is gone today."""
    try:
        return await visit.engine.memories.get(visit.namespace, memory_id, as_of)
    except NotFound:
        return None


def reworded(story: Story, as_of: datetime | None) -> Event | None:
    """The last change of its words, by a time or until now: whoever stored it first did not write these."""
    changes = [event for event in story.events if event.event == "changed" and event.old_text != event.new_text]
    return next((event for event in reversed(changes) if as_of is None or event.at <= as_of), None)


def ending(story: Story) -> Event | None:
    """What took the memory out of force, if it still is."""
    if story.state == "in_force" or not story.events:
        return None
    ends = [event for event in story.events if event.event in ("superseded", "deleted", "expired", "forgotten")]
    return ends[-1] if ends else None


async def told(events: Sequence[Event]) -> list[Told]:
    """Events with the differences of their texts: of the latest, as many as take little time and room."""
    left, room = COMPARED_CHARACTERS, CHANGED_BYTES
    found: list[Told] = []
    for event in reversed(events):
        pieces = metadata = None
        if room < 0:
            found.append(Told(event, None, None))
            continue
        old, new = event.old_text, event.new_text
        if event.event == "changed" and old is not None and new is not None and old != new:
            left -= len(old) + len(new)
            pieces = await compared(old, new) if left >= 0 else None
        if (other := (event.changed or {}).get("metadata")) is not None:
            before, after = pretty(other.old), pretty(other.new)
            left -= len(before) + len(after)
            metadata = await compared(before, after) if left >= 0 else None
        room -= sum(len(rendering.stored(piece.text)) for piece in (*(pieces or ()), *(metadata or ())))
        found.append(Told(event, pieces, metadata) if room >= 0 else Told(event, None, None))
    return found[::-1]


async def compared(old: str, new: str) -> list[diffs.Piece]:
    """What changed in a text; a long one is compared in a thread."""
    old, new = old[:READ_CHARACTERS], new[:READ_CHARACTERS]
    if len(old) + len(new) > SHOWN_CHARACTERS:
        return await tasks.in_thread(diffs.changes, old, new)
    return diffs.changes(old, new)


def changing(done: str, change: Callable[[Visit, str, datetime | None], Awaitable[str | Written | None]]) -> Page:
    """A form that changes a memory, unless it has changed since its page was loaded."""

    async def page(visit: Visit) -> Response:
        memory_id = visit.given("id")
        try:
            since = time_of(visit.given("since"), "since")
            result = await change(visit, memory_id, since)
        except (Invalid, Conflict) as problem:
            typed = {name: visit.given(name) for name in ("text", "category", "key", "metadata", *TIMES)}
            is_edit = visit.request.url.path == EDIT
            status, _ = problems.status_and_title(problem)
            return await shown(visit, memory_id, status, problem, typed=typed if is_edit else None)
        if done == "deleted" and origin.current().limits is not None:  # its page is about what is there
            return visit.go("/console/memories", done=done)
        degraded = {"degraded": "1"} if isinstance(result, Written) and result.degraded else {}
        return visit.go("/console/memory", id=memory_id, done=result if isinstance(result, str) else done, **degraded)

    return page


EDIT = "/console/memory/edit"
TIMES = ("valid_from", "valid_until")


async def edit(visit: Visit, memory_id: str, since: datetime | None) -> str | Written:
    """Change what the form has otherwise than the memory."""
    stored = await visit.engine.memories.get(visit.namespace, memory_id)
    text, category = visit.given("text"), visit.given("category")
    has_text = text and text != _LINE_ENDS.sub("\n", stored.text)
    details: dict[str, Any] = {
        name: time_of(visit.given(name), name)
        for name in TIMES
        if visit.given(name).strip() != field_time(getattr(stored, name))
    }
    if (key := visit.given("key").strip() or None) != stored.key:
        details["key"] = key
    metadata = metadata_of_text(visit.given("metadata")) if visit.given("metadata").strip() else {}
    patch = metadata_patch(stored.metadata, metadata) if metadata != stored.metadata else None
    if len(stored.text) <= SHOWN_CHARACTERS and not text.strip():
        raise Invalid("A memory needs a text: to remove it, delete it")
    if not has_text and category == stored.category and not details and patch is None:
        return "same"
    change = Change(text if has_text else None, None if category == stored.category else category, patch, details)
    return await visit.engine.memories.update(visit.namespace, memory_id, change, since)


async def pin(visit: Visit, memory_id: str, since: datetime | None) -> str:
    """Pin it, or take the pin away."""
    pinned = bool(visit.given("pinned"))
    await visit.engine.memories.update(visit.namespace, memory_id, Change(details={"pinned": pinned}), since)
    return "pinned" if pinned else "unpinned"


async def expire(visit: Visit, memory_id: str, since: datetime | None) -> Written:
    """At a time, in some days, or never."""
    at, days = time_of(visit.given("expires_at"), "expires_at"), visit.given("days").strip()
    details: dict[str, Any] = {"expires_at": None}
    if not visit.given("never"):
        details = {} if at is None else {"expires_at": at}
        details |= {"expires_in": days_of(days) * 24 * 60 * 60} if days else {}
    if not details:
        raise Invalid("Say when it expires: a time, or a number of days")
    return await visit.engine.memories.update(visit.namespace, memory_id, Change(details=details), since)


async def undo(visit: Visit, memory_id: str, since: datetime | None) -> Written:
    """Bring it back into force."""
    return await visit.engine.memories.undo(visit.namespace, memory_id, since)


async def delete(visit: Visit, memory_id: str, since: datetime | None) -> None:
    """Delete it; what it had superseded comes back if that is wanted."""
    visit.require_sure()
    restore = bool(visit.given("restore"))
    await visit.engine.memories.delete(visit.namespace, memory_id, restore=restore, if_since=since)


async def replace(visit: Visit) -> Response:
    """The form for a new memory in the place of this one, with what both have in common.

    What metadata says, such as where a text comes from, is said of the old one alone.
    """
    origin.require("write")
    stored = await visit.engine.memories.get(visit.namespace, visit.asked("id"))
    typed = dict.fromkeys(FIELDS, "") | {
        "text": stored.text[:SHOWN_CHARACTERS],
        "user": stored.user_id or "",
        "agent": stored.agent_id or "",
        "session": stored.session_id or "",
        "category": stored.category,
        "key": stored.key or "",
        "pinned": "yes" if stored.pinned else "",
        "supersedes": str(stored.id),
        "since": stored.since.isoformat(),
    }
    return visit.page("new_memory.html", problem=None, categories=CATEGORIES, typed=typed, now=None)


ROUTES = [
    get("/console/memory", memory),
    get("/console/memory/replace", replace),
    post(EDIT, changing("changed", edit)),
    post("/console/memory/pin", changing("pinned", pin)),
    post("/console/memory/expiry", changing("expiry", expire)),
    post("/console/memory/undo", changing("undone", undo)),
    post("/console/memory/delete", changing("deleted", delete)),
]
