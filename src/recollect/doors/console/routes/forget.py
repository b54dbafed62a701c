"""Forgetting for good: first a page with what would go, then, if that is confirmed, the receipt."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from recollect.doors.console import problems
from recollect.doors.console.unknown_users import unknown_user
from recollect.doors.console.visit import Visit, get, post
from recollect.doors.recalls import Asked, Recalled
from recollect.errors import Invalid, NotFound
from recollect.flows.kinds.target import SESSION, USER, Target

MAX_TEXTS = 10
FOUND = 30

ROWS = {
    "api_keys": "keys to the API",
    "buffers": "buffers of sessions in Redis",
    "giants": "vector indexes of a user alone",
    "graph_edge_versions": "past versions of edges",
    "graph_edges": "edges of the graph",
    "graph_node_versions": "past versions of nodes",
    "graph_nodes": "nodes of the graph",
    "memories": "long-term memories",
    "memory_history": "entries in the history of memories",
    "memory_versions": "past versions of memories",
    "passages": "passages of the search index",
    "summaries": "summaries of sessions",
}
"""What a receipt counts, where the name of its table says too little."""


async def forget(visit: Visit) -> Response:
    """What would be forgotten, if the address names something; else the forms to choose it."""
    try:
        targets = targets_of(visit.all_asked("name"), visit.asked("user"), visit.asked("session"))
        twins = bool(visit.asked("twins"))
        expected = await visit.engine.forget.count_several(visit.namespace, targets, twins=twins)
    except (Invalid, NotFound) as problem:
        status, _ = problems.status_and_title(problem)
        unknown = await unknown_user(visit, "user", "/console/forget") if status == 404 else None
        return visit.page("forget.html", status, problem=problem, found=None, unknown=unknown, **form_values(visit))
    if expected:
        is_item = all(target.kind not in (SESSION, USER) for target in targets)
        return visit.page(
            "forget_dry_run.html",
            receipts=expected,
            names=list(map(str, targets)),
            texts=await texts_of(visit, targets[:MAX_TEXTS]) if is_item else [],
            twins=twins,
            is_item=is_item,
            rows=ROWS,
            back=visit.asked("back"),
        )
    found = await matching_items(visit, visit.asked("q")) if visit.asked("q") else None
    is_empty = found is not None and not found.memories
    unknown = await unknown_user(visit, "of_user", "/console/forget") if is_empty else None
    return visit.page("forget.html", problem=None, found=found, unknown=unknown, **form_values(visit))


def form_values(visit: Visit) -> dict[str, Any]:
    """What stands in the forms."""
    names = ("user", "session", "name", "of_user", "all")
    return {"question": visit.asked("q"), **{name: visit.asked(name) for name in names}}


async def matching_items(visit: Visit, question: str) -> Recalled:
    """Items that have words of a text, to choose from; if all are wanted, also those that may mean the same."""
    asked = Asked(query=question, user_id=visit.asked("of_user") or None, top_k=FOUND, explain=True)
    found = Recalled.of(await asked.recall(visit.engine, visit.namespace))
    if not visit.asked("all"):
        found.memories = [each for each in found.memories if each.explanation and each.explanation.matched_words]
    return found


async def texts_of(visit: Visit, targets: Sequence[Target]) -> list[str]:
    """What some items say."""
    stories = [await visit.engine.lineage.of(visit.namespace, str(target)) for target in targets]
    return [story.text for story in stories if story.text is not None]


def targets_of(names: Sequence[str], user: str, session: str) -> list[Target]:
    """What is to be forgotten."""
    whole = [Target(kind, each) for kind, each in ((USER, user), (SESSION, session)) if each]
    return [*map(Target.named, dict.fromkeys(names)), *whole]


async def confirmed(visit: Visit) -> Response:
    """Forget what the page before had shown, and say what went."""
    twins = bool(visit.given("twins"))
    targets = targets_of(visit.all_given("name"), "", "")
    if not targets:
        raise Invalid("Choose what to forget")
    forgotten = await visit.engine.forget.several(visit.namespace, targets, twins=twins)
    status = 200 if forgotten.problem is None else problems.status_and_title(forgotten.problem)[0]
    return visit.page(
        "forget_receipt.html", status, it=forgotten, rows=ROWS, back=visit.given("back"), at=datetime.now(UTC)
    )


ROUTES = [get("/console/forget", forget), post("/console/forget", confirmed)]
