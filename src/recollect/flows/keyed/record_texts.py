"""The text that a record is found by where its caller gives none: what its value says, a line for each leaf."""

from collections.abc import Iterator

from recollect.checks import Json


def spoken(value: Json) -> str:
    """Every leaf of a JSON value with the names that lead to it; empty if the value has no leaf."""
    return "\n".join(_lines(value, ""))


def _lines(value: Json, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # A name such as favourite_colour is words, too.
            yield from _lines(inner, f"{name} {key.replace('_', ' ')}".strip())
    elif isinstance(value, list):
        for inner in value:
            yield from _lines(inner, name)
    elif value is not None and (said := str(value).strip()):
        yield f"{name}: {said}" if name else said
