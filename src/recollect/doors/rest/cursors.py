"""Places in a list as clients carry them from page to page: opaque, and refused if they are not ours."""

import base64
import json
from datetime import datetime
from uuid import UUID

from recollect.errors import Invalid

_NOT_OURS = "page must be the next_page of an earlier answer"


def of_text(place: str | None) -> str | None:
    """The place behind a text; None where nothing follows."""
    return None if place is None else _opaque(place)


def of_moment(place: tuple[datetime, UUID] | None) -> str | None:
    """The place behind an item of a list in the order of time."""
    return None if place is None else _opaque(json.dumps([place[0].isoformat(), place[1].hex]))


def _opaque(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_text(cursor: str | None) -> str | None:
    """The text behind which a page begins."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except ValueError as problem:
        raise Invalid(_NOT_OURS) from problem


def read_moment(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The time and id behind which a page begins."""
    place = read_text(cursor)
    if place is None:
        return None
    try:
        at, item_id = json.loads(place)
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise Invalid(_NOT_OURS)
        return moment, UUID(item_id)
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise Invalid(_NOT_OURS) from problem
