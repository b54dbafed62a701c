"""One session of Recollect as a list of a framework's own messages, which come back as they were."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from recollect.adapters.connection import Connection
from recollect.settings import Settings

# The most that one request returns.
PAGE = 1000

# Of a tool call or its result: enough to find it again, while a long result is not cut into many passages.
RENDERED_CHARACTERS = 2_000

# Under this name the metadata of a message tells which framework its payload is of.
FORMAT = "format"


@dataclass(frozen=True, slots=True)
class Item:
    """A message of a framework. Its payload is JSON text; None if it was said through another door."""

    role: str
    text: str
    payload: str | None


class SessionLog:
    """Adds, reads and removes the messages of a session."""

    def __init__(self, connection: Connection, session_id: str, user_id: str | None, format_name: str) -> None:
        self._connection = connection
        self._session_id = session_id
        self._user_id = user_id
        self._format = format_name

    async def add(self, items: Iterable[Item]) -> None:
        """Append messages, all or none; nothing is sent for none."""
        if body := self._body(items):
            await self._connection.call_async("POST", "/sessions/{}/messages", self._session_id, json=body)

    def add_now(self, items: Iterable[Item]) -> None:
        """The same for synchronous callers."""
        if body := self._body(items):
            self._connection.call("POST", "/sessions/{}/messages", self._session_id, json=body)

    async def last(self, limit: int | None) -> list[Item]:
        """The newest messages, or all, oldest first."""
        pages = _Pages(limit)
        while pages.wanted:
            answer = await self._connection.call_async(
                "GET", "/sessions/{}/messages", self._session_id, params=pages.query()
            )
            pages.take(answer["messages"])
        return [self._item(message) for message in pages.messages]

    def all_now(self) -> list[Item]:
        """All messages, for synchronous callers."""
        pages = _Pages(None)
        while pages.wanted:
            answer = self._connection.call("GET", "/sessions/{}/messages", self._session_id, params=pages.query())
            pages.take(answer["messages"])
        return [self._item(message) for message in pages.messages]

    async def pop(self) -> Item | None:
        """Remove the newest message for good."""
        answer = await self._connection.call_async("DELETE", "/sessions/{}/messages/last", self._session_id)
        return None if answer["message"] is None else self._item(answer["message"])

    async def clear(self) -> None:
        """Remove all messages for good."""
        await self._connection.call_async("DELETE", "/sessions/{}/messages", self._session_id)

    def clear_now(self) -> None:
        """The same for synchronous callers."""
        self._connection.call("DELETE", "/sessions/{}/messages", self._session_id)

    def _body(self, items: Iterable[Item]) -> dict[str, Any] | None:
        messages = [
            {
                "role": item.role,
                "text": storable(item.text),
                "payload": item.payload,
                "metadata": {FORMAT: self._format},
            }
            for item in items
        ]
        return {"messages": messages, "user_id": self._user_id} if messages else None

    def _item(self, message: Mapping[str, Any]) -> Item:
        return Item(message["role"], message["text"], payload_of(message, self._format))


class _Pages:
    """The newest messages of a session, collected page by page from the end."""

    def __init__(self, limit: int | None) -> None:
        self.messages: list[dict[str, Any]] = []
        self._limit = limit
        self.wanted = limit is None or limit > 0

    def query(self) -> dict[str, Any]:
        """For the next page."""
        left = PAGE if self._limit is None else self._limit - len(self.messages)
        before = self.messages[0]["id"] if self.messages else None
        return {"limit": min(left, PAGE), "newest": "true", "before": before}

    def take(self, page: list[dict[str, Any]]) -> None:
        """What came of it."""
        asked = self.query()["limit"]
        self.messages = page + self.messages
        self.wanted = len(page) == asked and (self._limit is None or len(self.messages) < self._limit)


async def sessions(connection: Connection, **chosen: str | None) -> AsyncIterator[dict[str, Any]]:
    """The sessions of a user or an agent, the last active first, fetched page by page."""
    cursor: str | None = None
    while True:
        page = await connection.call_async("GET", "/sessions", params={**chosen, "limit": PAGE, "cursor": cursor})
        for session in page["sessions"]:
            yield session
        if (cursor := page["next"]) is None:
            return


def payload_of(message: Mapping[str, Any], format_name: str) -> str | None:
    """A framework's own message; None for one of another framework or door, of which only the text can be read."""
    if (message["metadata"] or {}).get(FORMAT) != format_name:
        return None
    payload: str | None = message["payload"]
    return payload


def shared_connection(url: str | None, key: str | None, namespace: str | None, settings: Settings | None) -> Connection:
    """The connection of this process to one memory: a program has many sessions, and needs one connection for all.

    It stays open until the process ends.
    """
    place = (url, key, namespace, id(settings))
    with _lock:
        if place not in _shared:
            _shared[place] = Connection(url, key, namespace=namespace, settings=settings)
        return _shared[place]


# A connection keeps its settings, so their ids stay theirs.
_shared: dict[tuple[str | None, str | None, str | None, int], Connection] = {}
_lock = Lock()


def storable(text: str) -> str:
    """A text without what the database cannot hold: NUL, and halves of characters. Payloads keep it, escaped."""
    return text.replace("\x00", "").encode(errors="replace").decode()


def text_of_parts(content: object) -> str:
    """The texts of a message's content: a string, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str) and text)
