"""Long-term memories: a list with filters, a search, and a form for a new one."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import Response

from recollect import checks
from recollect.doors import cursors
from recollect.doors.console import problems
from recollect.doors.console.unknown_users import unknown_user
from recollect.doors.console.visit import Visit, get, post
from recollect.doors.memories import DEFAULT_CATEGORY
from recollect.doors.recalls import metadata_of_text, moment
from recollect.errors import Conflict, Invalid
from recollect.flows.long_term.condense import verbatim
from recollect.flows.long_term.memory_requests import Chosen, Options
from recollect.language import words
from recollect.memory.memories import CATEGORIES, MemoryScope, Place, StoredMemory

LIMIT = 50
MAX_EXPIRING_DAYS = 3650
# Of a text in a list.
SHOWN_CHARACTERS = 280
_BEFORE_MARK = 60

FILTERS = (
    *("q", "user", "agent", "session", "category", "key", "pinned", "state", "expiring", "since", "until", "as_of"),
    *("valid_at", "metadata"),
)
TIMES = ("since", "until", "as_of", "valid_at")
FIELDS = (
    *("text", "user", "agent", "session", "category", "key", "valid_from", "valid_until", "expires_at", "metadata"),
    *("pinned", "supersedes", "since"),
)
DONE = {"deleted": "The memory is deleted."}
# A search ranks what is in force; these say which of all memories a list has.
ONLY_OF_LISTS = {"key": "key", "pinned": "pinned", "state": "state", "expiring": "expiry"}


class Listed(NamedTuple):
    """A memory in a list; in results of a search, with its score."""

    memory: StoredMemory
    excerpt: str
    score: float | None = None


class Listing(NamedTuple):
    """A page of a list."""

    memories: Sequence[Listed]
    cursor: str | None = None
    note: str | None = None


async def memories(visit: Visit) -> Response:
    """A page of the list, or what a search found."""
    asked = {name: visit.asked(name) for name in FILTERS}
    listing, problem, times = Listing(()), None, dict[str, datetime | None].fromkeys(TIMES)
    try:
        visit.require_known(*FILTERS, "cursor", "done")
        times = {name: time_of(asked[name], name) for name in TIMES}
        listing = await (found if asked["q"] else listed)(visit, asked)
    except Invalid as fault:
        problem = fault
    return visit.page(
        "memories.html",
        422 if problem else 200,
        asked=asked,
        done=DONE.get(visit.asked("done")),
        times=times,
        listing=listing,
        problem=problem,
        unknown=None if problem or listing.memories else await unknown_user(visit, "user", "/console/memories"),
        categories=CATEGORIES,
        category_choices=[("", "All"), *zip(CATEGORIES, CATEGORIES, strict=True)],
        typed={**dict.fromkeys(FIELDS, ""), "category": DEFAULT_CATEGORY, "user": asked["user"]},
    )


async def listed(visit: Visit, asked: Mapping[str, str]) -> Listing:
    """The newest memories that pass the filters."""
    cursor = visit.asked("cursor")
    behind = Place(*cursors.read(cursor, UUID, "the link")) if cursor else None
    page = await visit.engine.memories.newest(visit.namespace, scope_of(asked), LIMIT, behind, chosen_of(asked))
    following = None if page.next is None else cursors.write(page.next.created_at, page.next.id)
    return Listing([Listed(memory, excerpt(memory.text)) for memory in page.memories], following)


async def found(visit: Visit, asked: Mapping[str, str]) -> Listing:
    """The memories that answer a question, best first."""
    ignored = [name for filter_name, name in ONLY_OF_LISTS.items() if asked[filter_name]]
    chosen = chosen_of({**asked, **dict.fromkeys(ONLY_OF_LISTS, "")})
    results = await visit.engine.memories.search(
        visit.namespace, asked["q"], scope_of(asked), chosen, LIMIT, everybody=True
    )
    terms = {variant for term in words.query_terms(asked["q"]) for variant in term.variants}
    notes = [f"A search does not filter by {' or '.join(ignored)}."] if ignored else []
    shown = [Listed(hit.memory, excerpt(hit.memory.text, terms), hit.score) for hit in results]
    return Listing(shown, note=" ".join([*notes, *([results.degraded] if results.degraded else [])]) or None)


def excerpt(text: str, terms: set[str] | None = None) -> str:
    """The beginning of a text on one line, or what stands around the first of some words."""
    line = " ".join(text[: 20 * SHOWN_CHARACTERS].split())
    places = words.places(line, terms) if terms else []
    start = max(places[0][0] - _BEFORE_MARK, 0) if places and places[0][1] > SHOWN_CHARACTERS else 0
    shown = line[start : start + SHOWN_CHARACTERS]
    return "…" * (start > 0) + shown + "…" * (len(text) > start + len(shown))


def scope_of(asked: Mapping[str, str]) -> MemoryScope:
    """Whose memories."""
    return MemoryScope(*(asked[name].strip() or None for name in ("user", "agent", "session")))


def chosen_of(asked: Mapping[str, str]) -> Chosen:
    """Which memories of a scope."""
    times: dict[str, Any] = {name: time_of(asked[name], name) for name in TIMES}
    expires_before = None
    if asked["expiring"]:
        expires_before = datetime.now(UTC) + timedelta(days=days_of(asked["expiring"]))
    return Chosen(
        categories=[asked["category"]] if asked["category"] else None,
        metadata=metadata_of_text(asked["metadata"]) if asked["metadata"] else None,
        key=asked["key"] or None,
        pinned={"yes": True, "no": False}.get(asked["pinned"]),
        superseded=asked["state"] == "superseded",
        expires_before=expires_before,
        **times,
    )


def time_of(text: str, name: str) -> datetime | None:
    """A field for a time, in UTC if it names no zone."""
    return checks.optional_utc(moment(text.strip() or None, name), name)


def days_of(text: str) -> float:
    """A number of days, as somebody typed it."""
    try:
        days = float(text)
    except ValueError:
        days = 0
    if not 0 < days <= MAX_EXPIRING_DAYS:
        raise Invalid(f"Write a number of days between 0 and {MAX_EXPIRING_DAYS:,}")
    return days


async def add(visit: Visit) -> Response:
    """Store a memory word for word, in the place of another one if the form names it."""
    typed = {name: visit.given(name) for name in FIELDS}
    try:
        added = await visit.engine.memories.add(
            visit.namespace,
            typed["text"],
            typed["category"],
            scope_of(typed),
            metadata_of_text(typed["metadata"]) if typed["metadata"].strip() else None,
            options=options_of(typed),
            condensed=verbatim(typed["text"]),
        )
    except (Invalid, Conflict) as problem:
        status, _ = problems.status_and_title(problem)
        now = None
        if isinstance(problem, Conflict) and typed["supersedes"]:
            # Whoever sees what it says now may decide again.
            now = await visit.engine.memories.get(visit.namespace, typed["supersedes"])
            typed["since"] = now.since.isoformat()
        return visit.page("new_memory.html", status, problem=problem, categories=CATEGORIES, typed=typed, now=now)
    done = "replaced" if added.what == "created" and added.superseded else added.what
    degraded = {"degraded": "1"} if added.degraded else {}
    return visit.go("/console/memory", id=str(added.memory.id), done=done, **degraded)


def options_of(typed: Mapping[str, str]) -> Options:
    """What a form says of a new memory besides its text."""
    times: dict[str, Any] = {name: time_of(typed[name], name) for name in ("valid_from", "valid_until", "expires_at")}
    return Options(
        **times,
        key=typed["key"].strip() or None,
        pinned=bool(typed["pinned"]) or None,
        supersedes=[typed["supersedes"]] if typed["supersedes"] else (),
        if_since=time_of(typed["since"], "since"),
    )


ROUTES = [get("/console/memories", memories), post("/console/memories", add)]
