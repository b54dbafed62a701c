"""The page of an item that is no long-term memory, such as a document or an insight; and whole texts, to keep."""

from starlette.responses import Response

from recollect import checks
from recollect.doors.console import excerpts
from recollect.doors.console.rendering import HEADERS
from recollect.doors.console.visit import Visit, get
from recollect.errors import Invalid, NotFound
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.lineage import Story

SHOWN_CHARACTERS = 20_000
SHOWN_BYTES = 120_000


async def item(visit: Visit) -> Response:
    """What it says, what happened to it, and what it was made from."""
    story = await story_of(visit, SHOWN_CHARACTERS + 1)
    kind, _, item_id = story.name.partition(":")
    shown = excerpts.fitting((story.text or "")[:SHOWN_CHARACTERS], SHOWN_BYTES).characters
    if kind == MEMORY:
        return visit.go("/console/memory", id=item_id)
    return visit.page(
        "item.html",
        kind=kind,
        id=item_id,
        story=story,
        events=[(event, None, None) for event in story.events],
        text=(story.text or "")[:shown],
        question=visit.asked("q"),
        is_cut=len(story.text or "") > shown,
    )


async def text(visit: Visit) -> Response:
    """The whole text of an item, as a file."""
    story = await story_of(visit, checks.MAX_TEXT_BYTES)
    if story.text is None:
        raise NotFound(f"{story.name} has no text any more")
    kept = {"Content-Disposition": 'attachment; filename="text.txt"', "X-Content-Type-Options": "nosniff"}
    return Response(story.text, media_type="text/plain", headers={**HEADERS, **kept})


async def story_of(visit: Visit, most: int) -> Story:
    """The story of the item that the address names."""
    if not visit.asked("name"):
        raise Invalid("The address names no item: it ends with a name such as ?name=insight:12")
    name, lineage = visit.asked("name"), visit.engine.lineage
    if name.startswith(f"{MEMORY}:"):
        return await lineage.of_memory(visit.namespace, name, most)
    return await lineage.of(visit.namespace, name, most)


ROUTES = [get("/console/item", item), get("/console/text", text)]
