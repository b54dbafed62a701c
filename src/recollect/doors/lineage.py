"""The story of an item as every door shows it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from recollect.flows import lineage
from recollect.flows.lineage import State, What
from recollect.trust import Trust

STATES: Mapping[State, str] = {
    "in_force": "in force",
    "superseded": "superseded: it is no longer in force",
    "deleted": "deleted: what it said is gone",
    "expired": "expired: what it said is gone",
    "forgotten": "forgotten: nothing is left of it",
    "gone": "gone",
    "held": "held for review",
}
# What is superseded by a newer memory is not superseded by whoever stored that.
HAPPENED = {"superseded": "replaced", "undone": "restored", "released": "released from review"}
REASONS = {
    "key": "it has the same key, and a newer memory of a key replaces the older one",
    "request": "the new memory was stored with the request to replace it",
    "undo": "a memory of the same key was brought back",
    "language model": "a language model found it outdated",
}
DETAILS = {
    "expires_at": "expires",
    "valid_from": "valid from",
    "valid_until": "valid until",
    "key": "key",
    "category": "category",
    "metadata": "metadata",
    "pinned": "pinned",
}
DOORS = {
    "rest": "over REST",
    "mcp": "over MCP",
    "gateway": "through the gateway",
    "console": "in the console",
    "cli": "on the command line",
    "library": "by a program that uses the library",
}

_TEXT = "What it says now, long texts cut; null if it is gone or held for review"


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class LineageMention(_Shown):
    """Another item."""

    name: str = Field(examples=["memory:0199c1de-7a5c-7e3b-9d51-5c1f3a7e2b10"])
    state: State
    text: str | None = Field(description=_TEXT)


class LineageDifference(_Shown):
    """What a part of a memory was, and what it became."""

    old: Any
    new: Any


class LineageEvent(_Shown):
    """Something that happened to the item."""

    at: datetime
    event: What
    author: str | None = Field(description="The label of the key that was used, or the user of the gateway")
    door: str | None = Field(description="rest, gateway, mcp, console, cli or library; null if it is not known")
    old_text: str | None
    new_text: str | None
    changed: dict[str, LineageDifference] | None = Field(description="What else became different, such as `expires_at`")
    by: LineageMention | None = Field(description="What took its place")
    because: str | None = Field(description="Why it was superseded: key, request, language model or undo")
    model: str | None = Field(description="The language model that condensed it, or decided to replace it")
    said: str | None = Field(description="The text that the language model condensed")
    saw: list[LineageMention] = Field(description="The memories that the language model was shown")
    despite: list[str] = Field(description="Of a release: why the item had been held for review")


class LineageReplaced(_Shown):
    """A memory that this one superseded; it may be in force again."""

    memory: LineageMention
    at: datetime
    because: str | None


class LineageSource(_Shown):
    """What the item was made from; one that is gone has a name only."""

    name: str = Field(examples=["message:0199c1de-7a5c-7e3b-9d51-5c1f3a7e2b11"])
    state: State
    text: str | None = Field(description=_TEXT)
    at: datetime | None = Field(description="When it was said or stored")
    speaker: str | None
    author: str | None
    door: str | None
    sources: list["LineageSource"] = Field(description="What it was made from itself")


class ItemLineage(_Shown):
    """An item as it is now, what happened to it, and what it was made from."""

    name: str = Field(examples=["memory:0199c1de-7a5c-7e3b-9d51-5c1f3a7e2b10"])
    state: State
    text: str | None = Field(description=_TEXT)
    at: datetime | None = Field(description="When it was said or stored")
    speaker: str | None
    key: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    expires_at: datetime | None
    events: list[LineageEvent] = Field(description="What happened to it, oldest first")
    superseded_by: LineageMention | None = Field(description="What took its place, if it is superseded")
    superseded: list[LineageReplaced] = Field(description="What it took the place of, also where that was undone")
    sources: list[LineageSource]
    is_whole: bool = Field(description="False if there are more events or sources than are shown")
    trust: Trust | None = Field(description="Where the text comes from; null if it is gone")
    held: list[str] = Field(description="Why it is held for review, so that recall does not find it; else empty")

    @classmethod
    def of(cls, story: lineage.Story) -> Self:
        """What the engine knows of an item."""
        return cls.model_validate(story)


def by(author: str | None, door: str | None) -> str:
    """Who did something and how, to be put behind what was done; empty if neither is known."""
    who = "" if author is None else f" by {author}"
    return who + ("" if door is None else f" {DOORS.get(door, door)}")
