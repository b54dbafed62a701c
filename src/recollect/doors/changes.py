"""Changes as every door shows them, and as a stream of server-sent events."""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, Field

from recollect.errors import RecollectError
from recollect.flows.feed import Entry, Feed, Page

EVENT_STREAM = "text/event-stream"

# A proxy that collects an answer before it passes it on would keep the events.
STREAM_HEADERS = {"X-Accel-Buffering": "no"}

# Proxies and clients take a stream that is silent for longer as dead.
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = ": nothing new\n\n"

Event = TypeVar("Event")


class Change(BaseModel):
    """Something that happened to an item, and what the item is now."""

    number: int = Field(description="Its place in the order of changes: pass it as `since` to continue")
    at: datetime
    event: str = Field(description="add, update, delete, forget or import", examples=["add"])
    kind: str = Field(
        description="message, document, memory, insight, working, stale, episode, node, edge, resource, golden, store, "
        "file or session",
        examples=["document"],
    )
    item_id: str = Field(description="The id of the item; of added messages, the id of their session")
    author: str | None = Field(description="The label of the key that was used, or the user of the gateway")
    door: str = Field(description="rest, gateway, mcp, console, cli or library", examples=["rest"])
    detail: dict[str, Any] | None = Field(
        description="Of messages, the position of the first and their count; of what left working memory, its "
        "stale_id; of memories, superseded_by, restored, or because (expired or pruned); of a store, the version "
        "that was redacted"
    )
    content: dict[str, Any] | None = Field(
        description="What the item is now, long texts cut; null if it is gone",
        examples=[{"text": "The ferry is late."}],
    )

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """A change of the feed."""
        return cls(**entry.change._asdict(), content=None if entry.content is None else dict(entry.content))

    @property
    def text(self) -> str | None:
        """What the item says now; of a turn, its first message."""
        if self.content is None:
            return None
        shown = self.content["messages"][0] if "messages" in self.content else self.content
        return str(shown["text"])

    @property
    def note(self) -> str:
        """What an update or a deletion was, if it was no change of what an item says, and not a wish."""
        detail = self.detail or {}
        if "superseded_by" in detail:
            return f"superseded by {self.kind}:{detail['superseded_by']}"
        return "restored" if detail.get("restored") else str(detail.get("because", ""))


class ChangesPage(BaseModel):
    """Changes in order. The next page begins after `next`."""

    changes: list[Change]
    next: int = Field(description="Pass it as `since` to continue")

    @classmethod
    def of(cls, page: Page) -> Self:
        """A page of the feed."""
        return cls(changes=[Change.of(entry) for entry in page.entries], next=page.next)


async def streamed(
    feed: Feed, namespace: str, first: Page, encode: Callable[[Page], str], seconds: float = math.inf
) -> AsyncIterator[str]:
    """A page and what follows it, encoded as events, until the server or the time ends.

    It also ends when the database does not answer: the client comes again, and is told why.
    """
    ends = time.monotonic() + seconds
    yield encode(first) or HEARTBEAT
    pages = feed.follow(namespace, first.next, HEARTBEAT_SECONDS)
    with suppress(RecollectError):
        async with aclosing(pages):
            async for page in pages:
                yield encode(page) or HEARTBEAT
                if time.monotonic() >= ends:
                    break


async def while_admitted(
    events: AsyncIterator[Event], is_still_admitted: Callable[[], Awaitable[bool]]
) -> AsyncIterator[Event]:
    """Events as long as the reader's key works; then the client comes again, and is refused."""
    async for each in events:
        if not await is_still_admitted():
            return
        yield each


def event(number: int, data: str) -> str:
    """A change with its number as the event's id, by which an interrupted stream goes on."""
    return f"id: {number}\ndata: {data}\n\n"


def encoded(page: Page) -> str:
    """Changes with all that is known of them, as events."""
    return "".join(event(entry.change.number, Change.of(entry).model_dump_json()) for entry in page.entries)
