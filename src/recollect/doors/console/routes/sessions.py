"""Sessions: to choose one of them, or to find what was said in any."""

from starlette.responses import Response

from recollect.doors import cursors
from recollect.doors.console import excerpts
from recollect.doors.console.unknown_users import unknown_user
from recollect.doors.console.visit import Visit, get
from recollect.doors.recalls import Asked
from recollect.memory.sessions import SessionFilter, SessionPlace

FILTERS = ("said", "text", "user", "agent", "session")

LIMIT = 50
FOUND = 20

# Of a title or of what was said last.
CHARACTERS = 200

# Bytes of a page for what was found.
FOUND_BYTES = 60_000


async def sessions(visit: Visit) -> Response:
    """Those that fit the filters, the last active first; or, with a question, messages that answer it."""
    visit.require_known(*FILTERS, "behind")
    asked = {name: visit.asked(name) for name in FILTERS}
    if asked["said"]:
        return await found(visit, asked)
    cursor = visit.asked("behind")
    behind = SessionPlace(*cursors.read(cursor, str, "behind")) if cursor else None
    wanted = SessionFilter(asked["user"] or None, asked["agent"] or None, asked["text"] or None)
    listed = await visit.engine.sessions.listed(visit.namespace, wanted, LIMIT + 1, behind, CHARACTERS)
    last = listed[LIMIT - 1] if len(listed) > LIMIT else None
    return visit.page(
        "sessions.html",
        asked=asked,
        sessions=listed[:LIMIT],
        next=cursors.write(last.updated_at, last.id) if last else None,
        is_first=behind is None,
        unknown=None if listed else await unknown_user(visit, "user", "/console/sessions"),
    )


async def found(visit: Visit, asked: dict[str, str]) -> Response:
    """Messages of all sessions or of one, the best first, each to be seen at its place."""
    question = Asked(
        query=asked["said"],
        user_id=asked["user"] or None,
        agent_id=asked["agent"] or None,
        session_id=asked["session"] or None,
        kinds=("message",),
        top_k=FOUND,
    )
    recalled = await question.recall(visit.engine, visit.namespace)
    texts = excerpts.fitted([memory.text for memory in recalled.memories], FOUND_BYTES)
    unknown = None if recalled.memories else await unknown_user(visit, "user", "/console/sessions")
    return visit.page("sessions_found.html", asked=asked, recalled=recalled, texts=texts, unknown=unknown)


ROUTES = [get("/console/sessions", sessions)]
