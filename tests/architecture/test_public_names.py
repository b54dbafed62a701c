"""`recollect` exports what a caller of the library can get in hand: records, and errors to catch."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import recollect
import recollect.doors.library.errors
import recollect.engine  # loads every error
from recollect import ContextService, MemoryManager, RecollectError


def ours(annotation: Any, seen: frozenset[type] = frozenset()) -> Iterator[type]:
    """The classes of ours in an annotation, and in the fields of those."""
    for part in get_args(annotation):
        yield from ours(part, seen)
    if isinstance(annotation, type) and annotation.__module__.startswith("recollect.") and annotation not in seen:
        yield annotation
        for field in get_type_hints(annotation).values():
            yield from ours(field, seen | {annotation})


def test_every_public_name_exists() -> None:
    for name in recollect.__all__:
        assert getattr(recollect, name).__name__ == name


def test_everything_that_a_public_method_takes_or_returns_is_exported() -> None:
    public = [
        method
        for door in (MemoryManager, ContextService)
        for name, method in inspect.getmembers(door, callable)
        if name == "__init__" or not name.startswith("_")
    ]
    named = {found.__name__ for method in public for hint in get_type_hints(method).values() for found in ours(hint)}
    assert named > {"Memory", "Receipt", "Recollection"}
    assert named <= set(recollect.__all__)


def test_every_category_of_errors_is_exported() -> None:
    assert {category.__name__ for category in RecollectError.__subclasses__()} <= set(recollect.__all__)
