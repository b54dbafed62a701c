"""One session: what was said in it, what its window holds, and what can be done with it."""

from typing import Any, cast, get_args
from uuid import UUID

from starlette.responses import Response

from recollect import checks
from recollect.doors.console import charts, excerpts
from recollect.doors.console.rendering import pretty
from recollect.doors.console.visit import Visit, get, post
from recollect.doors.recalls import moment
from recollect.errors import NotFound, Unavailable
from recollect.flows.chat_ids import is_stored_chat
from recollect.flows.short_term.transcripts import END, Page
from recollect.memory.windows import Strategy, WindowConfig

PAGE = "/console/session"
LINES = 50
SUMMARIES = 10

# So much of a long text is read: more would keep others out of sight. A page shows what of it fits.
CHARACTERS = 5_000
WINDOW_CHARACTERS = 300

# Bytes of a page for texts, for metadata, for the window and for summaries.
TEXT_BYTES, METADATA_BYTES, WINDOW_BYTES, SUMMARY_BYTES = 90_000, 15_000, 15_000, 10_000

LARGEST_COUNT = 2**31 - 1


async def session(visit: Visit) -> Response:
    """A page of the transcript, beside what is known of the session."""
    session_id, as_of = visit.asked("id"), visit.asked("as_of")
    known = await visit.engine.sessions.get(visit.namespace, session_id)
    page = await transcript(visit, session_id)
    return visit.page(
        "session.html",
        session=known,
        metadata=excerpts.fitting(pretty(known.metadata), METADATA_BYTES),
        page=page,
        at=visit.asked("at"),
        as_of=as_of,
        texts=excerpts.fitted([line.text for line in page.lines], TEXT_BYTES),
        metadatas=excerpts.fitted([line.metadata or "" for line in page.lines], METADATA_BYTES),
        # What is in the window now says nothing of the past.
        **(await window_of(visit, session_id) if not as_of else {"window": None, "outage": None}),
        is_chat=is_stored_chat(session_id),
        done=visit.asked("done"),
    )


async def transcript(visit: Visit, session_id: str) -> Page:
    """The last messages, those before or behind a position, or those around a message."""
    transcripts, at, as_of = visit.engine.transcripts, visit.asked("at"), moment(visit.asked("as_of") or None, "as_of")
    if at:
        return await transcripts.around(visit.namespace, session_id, message_id(at), LINES, CHARACTERS)
    if visit.asked("start"):
        start = visit.number_asked("start", 0, 0, END)
        return await transcripts.following(visit.namespace, session_id, start, LINES, CHARACTERS, as_of)
    before = visit.number_asked("before", END, 0, END)
    return await transcripts.before(visit.namespace, session_id, before, LINES, CHARACTERS, as_of)


async def window_of(visit: Visit, session_id: str) -> dict[str, Any]:
    """What an agent would have before it, and what was summarised; where Redis is away, why there is none."""
    try:
        window = await visit.engine.windows.outline(visit.namespace, session_id, LINES, WINDOW_CHARACTERS)
    except Unavailable as problem:
        return {"window": None, "outage": str(problem)}
    summaries = await visit.engine.transcripts.summaries(visit.namespace, session_id, SUMMARIES, CHARACTERS)
    used = f"about {window.total_tokens:,} of {window.max_tokens:,} tokens"
    return {
        "window": window,
        "window_characters": WINDOW_CHARACTERS,
        "outage": None,
        "window_texts": excerpts.fitted([message.text for message in window.messages], WINDOW_BYTES),
        "used": charts.bar(window.total_tokens, window.max_tokens, used),
        "pinned": {message.id for message in window.messages if message.pinned},
        "summaries": summaries,
        "summary_texts": excerpts.fitted([summary.text for summary in summaries], SUMMARY_BYTES),
    }


def message_id(given: str) -> UUID:
    """The id of a message as it stands in an address."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no message of that id") from None


async def rename(visit: Visit) -> Response:
    """Another title."""
    await visit.engine.sessions.change(visit.namespace, visit.given("id"), visit.given("title").strip(), None)
    return visit.go(PAGE, id=visit.given("id"), done="renamed")


async def set_window(visit: Visit) -> Response:
    """How the window is limited; what is left empty follows the deployment."""
    known = await visit.engine.sessions.get(visit.namespace, visit.given("id"))
    strategy = visit.given("strategy") or None
    if strategy is not None:
        checks.one_of(strategy, get_args(Strategy), "strategy")
    limits = [visit.optional_number_given(name, 1, LARGEST_COUNT) for name in ("max_messages", "max_tokens")]
    config = WindowConfig(cast(Strategy | None, strategy), *limits)
    await visit.engine.windows.configure(visit.namespace, known.id, config)
    return visit.go(PAGE, id=known.id, done="window")


ROUTES = [
    get(PAGE, session),
    post(f"{PAGE}/rename", rename),
    post(f"{PAGE}/window", set_window),
]
