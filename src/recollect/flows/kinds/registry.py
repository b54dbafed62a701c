"""Every kind of memory, in one tuple, for code that treats kinds alike."""

from recollect.flows.kinds.cognitive import COGNITIVE
from recollect.flows.kinds.conversations import CONVERSATIONS
from recollect.flows.kinds.keyed import KEYED
from recollect.flows.kinds.kind import InFeed, Item, Kind, Owned
from recollect.flows.kinds.long_term import LONG_TERM, PAST_MEMORY, RESOURCE
from recollect.flows.kinds.quality import QUALITY
from recollect.flows.kinds.stores import STORES

KINDS: tuple[Kind, ...] = (*CONVERSATIONS, *LONG_TERM, *COGNITIVE, RESOURCE, *KEYED, *QUALITY, *STORES)
"""Each behind those that it refers to: the order of an export."""


def items() -> dict[str, Item]:
    """What can be named and forgotten, by what stands before the colon."""
    return {kind.item.name: kind.item for kind in KINDS if kind.item is not None}


def named() -> dict[str, Kind]:
    """The kinds of these items, by the same names."""
    return {kind.item.name: kind for kind in KINDS if kind.item is not None}


def recalled() -> list[str]:
    """The names of what recall finds."""
    return [item.name for item in items().values() if item.source is not None]


def indexed() -> list[str]:
    """The kinds of passages: of what recall finds, and of what it finds only in the past."""
    return [*recalled(), PAST_MEMORY]


def in_feed() -> dict[str, InFeed]:
    """What the feed of changes tells of, by the name it has there."""
    return {kind.feed.name: kind.feed for kind in KINDS if kind.feed is not None}


def owned() -> list[tuple[Item, Owned]]:
    """What can belong to a user."""
    return [(item, item.owned) for item in items().values() if item.owned is not None]


def counted() -> dict[str, Kind]:
    """The kinds that a status counts, by the name it has for them."""
    return {kind.shown_as or kind.record.table: kind for kind in KINDS if kind.record.size is not None}
