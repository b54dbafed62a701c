"""Cursors: the place where a page of a list ended, as a text that the client sends back for the next one."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from recollect.errors import Invalid

Id = TypeVar("Id")


def write(at: datetime, item_id: object) -> str:
    """The place of the last item of a page, in an order by time and id."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {item_id}".encode()).decode()


def read(cursor: str, parse: Callable[[str], Id], source: str) -> tuple[datetime, Id]:
    """The place again; `source` says where the client has the cursor from."""
    try:
        at, _, item_id = base64.b64decode(cursor.encode(), b"-_", validate=True).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), parse(item_id)
    except (ValueError, OverflowError) as problem:
        raise Invalid(f"cursor is invalid: pass {source} of the previous page") from problem
