"""Changes as every door shows them."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from recollect.flows.feed import Entry, Page


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
    door: str = Field(description="rest, gateway, mcp, cli or library", examples=["rest"])
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


class ChangesPage(BaseModel):
    """Changes in order. The next page begins after `next`."""

    changes: list[Change]
    next: int = Field(description="Pass it as `since` to continue")

    @classmethod
    def of(cls, page: Page) -> Self:
        """A page of the feed."""
        return cls(changes=[Change.of(entry) for entry in page.entries], next=page.next)
