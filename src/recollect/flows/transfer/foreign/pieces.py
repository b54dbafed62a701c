"""What the readers of foreign files yield: messages of sessions, texts, notes, memories, and what was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid
from recollect.identifiers import uuid_at, uuid_of


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation, known by an id that is the same whenever its file comes."""

    id: str
    user_id: str
    title: str | None
    metadata: Mapping[str, Any]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Said:
    """One message; its time is None if the file has none."""

    place: str
    session: Session
    id: UUID
    role: str
    content: str
    at: datetime | None
    speaker: str | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """About how much is to be stored."""
        return len(self.content)

    def check(self) -> None:
        """Refuse what no door would store."""
        _check(self.metadata, self.at)
        checks.text(self.content, "the message")
        checks.short_name(self.role, "role")
        checks.optional_short_name(self.speaker, "speaker")
        checks.optional_text(self.session.title, "title")
        checks.metadata(self.session.metadata)


@dataclass(frozen=True, slots=True)
class Note:
    """A node of the graph by its name, where its note is, and the same of those that it links to."""

    name: str
    folder: str
    path: str
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Text:
    """A text under a URI. Without an owner it becomes a document, with one a resource of that user."""

    place: str
    uri: str
    owner: str | None
    title: str | None
    content: str
    at: datetime | None
    metadata: Mapping[str, Any]
    note: Note | None = None

    @property
    def size(self) -> int:
        """About how much is to be stored."""
        return len(self.content)

    def check(self) -> None:
        """Refuse what no door would store."""
        _check(self.metadata, self.at)
        checks.text(self.content, "the text")
        checks.optional_text(self.title, "title")
        checks.text(self.uri, "the name of the text")


@dataclass(frozen=True, slots=True)
class Fact:
    """A long-term memory under a key: a newer one replaces it."""

    place: str
    id: UUID
    user_id: str | None
    agent_id: str | None
    key: str
    text: str
    at: datetime | None
    metadata: Mapping[str, Any]

    @property
    def size(self) -> int:
        """About how much is to be stored."""
        return len(self.text)

    def check(self) -> None:
        """Refuse what no door would store."""
        _check(self.metadata, self.at)
        checks.text(self.text, "the memory")
        checks.short_name(self.key, "key")
        checks.optional_short_name(self.agent_id, "the name of the agent")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was not taken on purpose, and why."""

    place: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Refused:
    """What is wrong with the file."""

    place: str
    reason: str


Item: TypeAlias = Said | Text | Fact
Piece: TypeAlias = Item | LeftOut | Refused


def _check(metadata: Mapping[str, Any] | None, at: datetime | None) -> None:
    checks.metadata(metadata)
    checks.storable_utc(at, "time")


def stable_id(at: datetime | None, *parts: str) -> UUID:
    """An id that follows from what the file says; those of a conversation grow with time, as index pages like it."""
    return uuid_of(*parts) if at is None else uuid_at(int(at.timestamp() * 1000), *parts)


def unix_moment(value: object) -> datetime | None:
    """A time as seconds since 1970; None if there is none that can be stored."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return checks.storable_utc(datetime.fromtimestamp(value, UTC), "time")
    except (ValueError, OverflowError, OSError):
        return None


def iso_moment(value: object) -> datetime | None:
    """A time as text; None if there is none that can be stored."""
    try:
        return checks.storable_utc(checks.moment(value), "time")
    except ValueError:
        return None


def text_of(value: object) -> str:
    """A text that PostgreSQL can hold; empty if it is no text. Programs write NUL now and then, which it cannot."""
    return value.replace("\x00", "") if isinstance(value, str) else ""


def title_of(value: object) -> str | None:
    """A title, or None."""
    return text_of(value).strip() or None


def titled(title: str | None, text: str) -> str:
    """A text under its title, whose words are then found with it."""
    return text if title is None else f"{title}\n\n{text}"


def listed(value: object) -> list[Any]:
    """A list; empty if it is none."""
    return value if isinstance(value, list) else []


def text_blocks(content: object) -> tuple[str, list[str]]:
    """The text of a message that has its parts in a list, and the types of those that are not text."""
    blocks = [block for block in listed(content) if isinstance(block, dict)]
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    others = [str(block.get("type") or "unknown") for block in blocks if block.get("type") != "text"]
    return "\n\n".join(text for text in (text_of(content), *texts) if text.strip()), others


def fields_of(value: object, what: str) -> Mapping[str, Any]:
    """A JSON object, or a sentence that says what is none."""
    if not isinstance(value, dict):
        raise Invalid(f"the {what} is not a JSON object")
    return value


def identity_of(fields: Mapping[str, Any], *names: str) -> str:
    """The first of some fields that is an id."""
    for name in names:
        if isinstance(value := fields.get(name), str) and value.strip():
            return value
    raise Invalid(f"it has no {names[0]}")
