"""Trust: where a text comes from, as a class. What is made from several texts has the lowest of their classes."""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from recollect import checks, origin
from recollect.errors import Forbidden

Trust = Literal["operator", "user", "assistant", "tool", "document", "import"]
CLASSES: Final[tuple[Trust, ...]] = get_args(Trust)
"""The most trusted first."""

OPERATOR, USER, ASSISTANT, TOOL, DOCUMENT, IMPORT = CLASSES

FOREIGN: Final = frozenset((TOOL, DOCUMENT, IMPORT))
"""Neither the operator nor anybody in the conversation has said it."""

BY_KIND: Final[dict[str, Trust]] = {
    "message": USER,
    "message:system": OPERATOR,
    "message:developer": OPERATOR,
    "message:assistant": ASSISTANT,
    "message:tool": TOOL,
    "message:function": TOOL,
    "memory": USER,
    "past_memory": USER,
    "document": DOCUMENT,
    "resource": DOCUMENT,
}
"""What an item is if nothing else is known: by its kind and, for messages, its role. All others, agents wrote."""


def of_item(kind: str, role: str | None = None, stated: str | None = None) -> Trust:
    """The class of an item: what is stored with it, or else what its kind and role say."""
    if stated in CLASSES:
        return stated
    by_kind = BY_KIND.get(kind, ASSISTANT)
    return by_kind if role is None else BY_KIND.get(f"{kind}:{role.lower()}", by_kind)


def of_callers_message(role: str, stated: str | None = None) -> Trust | None:
    """The class to store with a message that the present caller brings; None if its role says it.

    Only an admin speaks for the operator: the system messages of others are a user's.
    """
    of_class = of_item("message", role, stated)
    if of_class == OPERATOR and not origin.may("admin"):
        return USER
    return None if of_class == of_item("message", role) else of_class


def of_callers_change(before: str | None) -> str | None:
    """The class to store with a text that the present caller changes: a user may have put words into it."""
    return USER if before == OPERATOR and not origin.may("admin") else before


def lowest(classes: Iterable[Trust]) -> Trust | None:
    """The least trusted of some classes; None of none."""
    return max(classes, key=CLASSES.index, default=None)


def at_least(least: str, name: str = "min_trust") -> tuple[Trust, ...]:
    """A class and all above it."""
    wanted = checks.one_of(least, CLASSES, name)
    return tuple(each for each in CLASSES if CLASSES.index(each) <= CLASSES.index(of_item("", None, wanted)))


def stated(given: str | None, name: str = "trust") -> Trust | None:
    """What a caller says of a text of its own. Only an admin speaks for the operator."""
    if given is None:
        return None
    said = of_item("", None, checks.one_of(given, CLASSES, name))
    if said == OPERATOR and not origin.may("admin"):
        raise Forbidden(f"{name} operator needs a key with role admin: use user, or leave it out")
    return said
