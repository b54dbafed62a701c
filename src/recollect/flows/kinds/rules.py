"""Rules for the fields of an imported record: the same as those of the doors, so that every door can show it."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.chat_ids import refuse_stored_chat

# From 2**53 on, other programs that read JSON begin to change numbers.
LARGEST_ID = 2**53 - 1

# Of positions and counts, which go up one by one: a thousand a second reach this in 35 years.
LARGEST_COUNT = 2**40

Fields = Mapping[str, Any]
Rule = Callable[[Any, str], object]
"""Takes a value and the name of its field, and raises Invalid if no door would accept the value there."""


def json_object(value: Any, name: str) -> None:
    """Refuse JSON that is not an object."""
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be a JSON object")


def json_text(value: Any, name: str) -> None:
    """Refuse what is not JSON in a text, or holds what no answer could show."""
    checks.storable(value, name)
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"{name} is not JSON: {checks.json_fault(problem)}") from problem
    checks.payload(decoded, name)


def one_of(*allowed: str) -> Rule:
    """One of some words."""
    return lambda value, name: checks.one_of(value, allowed, name)


def between(low: float, high: float) -> Rule:
    """A number in a range."""
    return lambda value, name: checks.number_between(value, low, high, name)


def at_least(low: int) -> Rule:
    """A whole number from here on."""
    return lambda value, name: checks.between(value, low, LARGEST_COUNT, name)


def text_up_to(characters: int) -> Rule:
    """A text that is not longer."""

    def check(value: str, name: str) -> None:
        if len(checks.text(value, name)) > characters:
            raise Invalid(f"{name} is longer than {characters} characters")

    return check


def own_session(value: str, name: str) -> None:
    """A session that is not a gateway's chat."""
    refuse_stored_chat(checks.identifier(value, name))


share = between(0.0, 1.0)
