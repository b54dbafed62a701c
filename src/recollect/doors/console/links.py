"""Where an item has its page: results, changes and lineage link to it."""

from urllib.parse import urlencode


def named(name: str, session_id: str | None = None) -> str:
    """The page of an item by its name, such as `memory:ID`."""
    kind, _, item_id = name.partition(":")
    return item(kind, item_id, session_id)


def item(kind: str, item_id: str, session_id: str | None = None, **more: str | None) -> str:
    """The page of an item; a message is shown at its place in its session.

    `more` says how to look at any other one: `q`, whose words are marked, and of a memory `as_of`.
    """
    if kind == "message" and session_id is not None:
        return f"/console/session?{urlencode({'id': session_id, 'at': item_id})}#m-{item_id}"
    pages = {
        "memory": ("/console/memory", {"id": item_id}),
        "session": ("/console/session", {"id": item_id}),
        "node": ("/console/graph", {"node": item_id}),
        "edge": ("/console/graph", {}),
        "golden": ("/console/quality/query", {"id": item_id}),
    }
    page, parameters = pages.get(kind, ("/console/item", {"name": f"{kind}:{item_id}"}))
    query = urlencode(parameters | {name: value for name, value in more.items() if value})
    return f"{page}?{query}" if query else page
