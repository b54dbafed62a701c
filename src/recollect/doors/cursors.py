"""Cursors: the place where a page of a list ended, as a text that the client sends back for the next one."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from recollect.errors import Invalid

Id = TypeVar("Id")


def write(at: datetime, item_id: object) -> str:
    """The place of the last item of a page, in an order by time and id."""
    return write_text(f"{at.isoformat()} {item_id}")


def read(cursor: str, parse: Callable[[str], Id], source: str) -> tuple[datetime, Id]:
    """The place again; `source` says where the client has the cursor from."""
    at, _, item_id = read_text(cursor, source).partition(" ")
    try:
        return datetime.fromisoformat(at).astimezone(UTC), parse(item_id)
    except (ValueError, OverflowError) as problem:
        raise _invalid(source) from problem


def write_text(place: str) -> str:
    """The place of the last item of a page, in the order of a text."""
    return base64.urlsafe_b64encode(place.encode()).decode()


def read_text(cursor: str, source: str) -> str:
    """The text again."""
    try:
        place = base64.b64decode(cursor.encode(), b"-_", validate=True).decode()
    except ValueError as problem:
        raise _invalid(source) from problem
    if "\x00" in place:  # PostgreSQL takes no text with it
        raise _invalid(source)
    return place


def _invalid(source: str) -> Invalid:
    return Invalid(f"The cursor is invalid: pass {source} of the previous page")
