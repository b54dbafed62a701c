"""Addresses of the console's pages, each with something to see."""

from datetime import UTC, datetime
from urllib.parse import urlencode

from playwright.async_api import Page

from recollect.doors.cli.demo import story
from recollect.doors.console.site import ROUTES
from tests.console_story import Told

# Neither has anything of a namespace before it is asked again and again: files of ours, and a stream of changes.
UNASKED = frozenset({"/console/static/{name}", "/console/watch/stream"})

# No pages: what pages load, and what they offer as a download.
LOADED = frozenset(
    {
        *UNASKED,
        "/console/text",
        "/console/recall/answer",
        *(f"/console/graph/{part}" for part in ("around", "between", "node", "path")),
        "/console/jobs/state",
        "/console/jobs/export",
    }
)

# What a page would erase it tries and takes back, which is refused to who may not; and so is who used the memory.
ERASING = frozenset({"/console/memory/replace", "/console/forget", "/console/audit"})


def routes() -> set[str]:
    """The paths of all pages."""
    return {route.path for route in ROUTES if "GET" in (route.methods or ())} - LOADED


def addresses(told: Told) -> dict[str, list[dict[str, str]]]:
    """The parameters with which each page is looked at."""
    return {
        "/console": [{}],
        "/console/access": [{}],
        "/console/audit": [{}, {"outcome": "done", "item": "message", "before": "9"}],
        "/console/graph": [{}, {"q": "a"}, {"node": str(told.node), "edit": "1"}, {"from": "Mira", "to": "Bergen"}],
        "/console/jobs": [{}],
        "/console/jobs/job": [{"id": job} for job in told.jobs],
        "/console/quality": [{}],
        "/console/review": [{}, {"state": "released"}],
        "/console/quality/query": [{"id": str(told.query)}],
        "/console/sessions": [{}, {"said": "Who must avoid nuts?"}],
        "/console/session": [{"id": told.session, "at": told.message}, {"id": told.other_session}],
        "/console/sign-in": [{}],
        "/console/recall": [
            {},
            {
                "query": story.QUESTIONS[0].asked,
                "min_relevance": "0.3",
                "top_k": "4",
                "include_pinned": "1",
                "user_id": story.USER,
            },
            {"query": story.QUESTIONS[0].asked, "other_query": "Where does Mira live?", "min_relevance": "default"},
            {"query": "dinner", "kinds": "memory", "as_of": "2020-01-01"},
        ],
        "/console/watch": [{}, {"kind": "memory", "event": "add"}, {"before": "5"}],
        "/console/memories": [
            {},
            {"q": "Where does Mira live?", "user": story.USER},
            {"state": "superseded", "key": "home city"},
            {"as_of": "2026-03-03T10:00:00"},
        ],
        "/console/memory": [
            {"id": told.memory},
            {"id": told.superseded, "q": "Oslo"},
            {"id": told.superseded, "as_of": datetime.now(UTC).isoformat()},
        ],
        "/console/memory/replace": [{"id": told.memory}],
        "/console/item": [{"name": f"insight:{told.insight}"}, {"name": f"message:{told.message}", "q": "peanuts"}],
        "/console/forget": [{}, {"name": f"memory:{told.memory}"}, {"user": story.USER}, {"q": "peanuts"}],
    }


def loaded(told: Told) -> dict[str, list[dict[str, str]]]:
    """The parameters with which a script asks for what pages load; not for streams, which do not end."""
    node = str(told.node)
    return {
        "/console/text": [{"name": f"message:{told.message}"}, {"name": f"memory:{told.memory}"}],
        "/console/recall/answer": [{"query": "Where does Mira live?"}],
        "/console/graph/around": [{}, {"node": node, "depth": "2"}],
        "/console/graph/between": [{"ids": node, "others": f"{node}.{told.node + 1}"}],
        "/console/graph/node": [{"node": node}],
        "/console/graph/path": [{"from": "Mira", "to": "Bergen"}],
        "/console/jobs/state": [{"id": job} for job in told.jobs],
        "/console/jobs/export": [{}, {"user": story.USER}],
    }


def every(told: Told, *, may_erase: bool = True) -> list[str]:
    """All addresses to which somebody is led who may erase, or only read."""
    return _joined({path: looks for path, looks in addresses(told).items() if may_erase or path not in ERASING})


def everything(told: Told) -> list[str]:
    """All addresses that answer a GET, pages or not."""
    return _joined(addresses(told) | loaded(told))


def _joined(looks: dict[str, list[dict[str, str]]]) -> list[str]:
    return [
        f"{path}?{urlencode(parameters)}" if parameters else path
        for path, asked in looks.items()
        for parameters in asked
    ]


async def sign_in(page: Page, key: str) -> None:
    """As a user does."""
    await page.goto("/console")
    await page.get_by_label("Key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Overview").wait_for()
