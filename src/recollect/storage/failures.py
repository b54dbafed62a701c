"""Database failures as our own errors: the one place that knows PostgreSQL's error classes."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from recollect.errors import Conflict, Invalid, LimitReached, Misconfigured, RecollectError, Unavailable

_BY_SQLSTATE_CLASS: dict[str, type[RecollectError]] = {
    "08": Unavailable,
    "0A": Misconfigured,
    "22": Invalid,
    "23": Conflict,
    "28": Misconfigured,
    "3D": Misconfigured,
    "42": Misconfigured,
    "53": Unavailable,
    "54": LimitReached,
    "57": Unavailable,
}

# Raised by our own functions in the database; see `Outdated`.
_OUTDATED = "RC001"

_DUPLICATE = "23505"

# Two transactions waited for each other, and PostgreSQL or Citus ended this one.
_CONTENDED = ("40001", "40P01")

# What a caller can act on; which statement it was is in the note of the error, for tracebacks.
_PLAIN = {
    "23503": "A record in {table} refers to a record that does not exist",
    _DUPLICATE: "Another record in {table} already has this key",
}


class Outdated(Conflict):
    """What a write took for granted has changed meanwhile: nothing was written, and it may look again and retry."""


class Duplicate(Conflict):
    """A row with the same key exists: nothing was written."""


class Contended(Unavailable):
    """Another transaction and this one stood in each other's way: nothing was written, and it may try again."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise a failure of the database inside this block as one of our categories."""
    try:
        yield
    except asyncpg.PostgresError as problem:
        if problem.sqlstate == _OUTDATED:
            raise Outdated(f"Another request changed what this one writes to: {problem.args[0]}") from problem
        if problem.sqlstate in _CONTENDED:
            raise Contended(f"Another request held what this one writes to ({what}). Try again.") from problem
        category = _BY_SQLSTATE_CLASS.get((problem.sqlstate or "")[:2], Unavailable)
        if problem.sqlstate in _PLAIN:
            sentence = _PLAIN[problem.sqlstate].format(table=problem.table_name or "this table")
        elif category is Invalid:
            sentence = f"The database cannot store a value in the request: {problem.args[0]} ({problem.sqlstate})"
        else:
            reason = problem.args[0] if problem.args else "no reason given"
            sentence = f"The database rejected {what}: {reason} ({problem.sqlstate})"
        failure = Duplicate(sentence) if problem.sqlstate == _DUPLICATE else category(sentence)
        failure.add_note(f"In the statement {what}")
        raise failure from problem
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        if isinstance(problem, ValueError):
            raise Invalid(f"The database cannot store a value in the request: {problem}") from problem
        raise Unavailable(f"The database connection was lost ({what}). Try again.") from problem
    except TimeoutError as problem:
        raise Unavailable(
            f"The database did not answer in time ({what}). Try again, or raise RECOLLECT_DATABASE_TIMEOUT_SECONDS."
        ) from problem
    except OSError as problem:
        reason = problem.strerror or str(problem) or type(problem).__name__
        raise Unavailable(
            f"The database cannot be reached: {reason}. Check that it is running and that its address is correct."
        ) from problem
