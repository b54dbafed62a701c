"""What store_messages and store_documents take, checked and in the form of the engine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Required, TypedDict
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid
from recollect.memory import documents, log

ROLES = ("user", "assistant", "system")

# They are stored in one transaction, which keeps its session locked.
MAX_STORED_AT_ONCE = 10_000


class NewMessage(TypedDict, total=False):
    """A message for `store_messages`; only role and content are required."""

    role: Required[str]
    content: Required[str]
    metadata: dict[str, Any] | None
    speaker: str | None
    at: datetime | None
    id: UUID | None


class NewDocument(TypedDict, total=False):
    """A document for `store_documents`; only the content is required."""

    content: Required[str]
    metadata: dict[str, Any] | None
    embedding: list[float] | None
    at: datetime | None
    id: UUID | None


def message(given: NewMessage, place: str = "") -> log.NewMessage:
    """A message for the log; `place` stands before the names of its fields in errors."""
    return log.NewMessage(
        checks.one_of(given["role"], ROLES, f"{place}role"),
        checks.text(given["content"], f"{place}content"),
        checks.metadata(given.get("metadata"), f"{place}metadata"),
        checks.optional_short_name(given.get("speaker"), f"{place}speaker"),
        checks.storable_utc(given.get("at"), f"{place}at"),
        checks.optional_uuid(given.get("id"), f"{place}id"),
    )


def document(given: NewDocument, place: str = "") -> documents.NewDocument:
    """A document for the engine, in the same way."""
    embedding = given.get("embedding")
    return documents.NewDocument(
        checks.text(given["content"], f"{place}content"),
        None if embedding is None else checks.embedding(embedding, f"{place}embedding"),
        checks.metadata(given.get("metadata"), f"{place}metadata"),
        checks.storable_utc(given.get("at"), f"{place}at"),
        checks.optional_uuid(given.get("id"), f"{place}id"),
    )


def messages(given: Sequence[NewMessage]) -> Iterator[log.NewMessage]:
    """Many messages, one at a time."""
    _require_list(given, "messages")
    for number, each in enumerate(given):
        place = f"messages[{number}]"
        _require_fields(each, NewMessage.__annotations__, NewMessage.__required_keys__, place)
        yield message(each, f"{place}.")


def many_documents(given: Sequence[NewDocument]) -> Iterator[documents.NewDocument]:
    """Many documents, one at a time."""
    _require_list(given, "documents")
    for number, each in enumerate(given):
        place = f"documents[{number}]"
        _require_fields(each, NewDocument.__annotations__, NewDocument.__required_keys__, place)
        yield document(each, f"{place}.")


def _require_list(given: object, name: str) -> None:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise Invalid(f"{name} must be a list of dicts, not {type(given).__name__}")
    if len(given) > MAX_STORED_AT_ONCE:
        raise Invalid(f"{name} has more than {MAX_STORED_AT_ONCE:,} entries: store them in several calls")


def _require_fields(given: object, known: Iterable[str], required: Iterable[str], place: str) -> None:
    if not isinstance(given, Mapping):
        raise Invalid(f"{place} must be a dict, not {type(given).__name__}")
    for name in sorted(required):
        if name not in given:
            raise Invalid(f"{place} has no {name}")
    for name in given:
        if name not in known:
            shown = str(name)[: checks.MAX_SHOWN_CHARACTERS]
            raise Invalid(f"{place} has an unknown field {shown!r}. {checks.nearest(shown, known)}")
