"""Database failures in our own words: the one place that knows PostgreSQL's error classes."""

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


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise a failure of the database inside this block as one of our categories."""
    try:
        yield
    except asyncpg.PostgresError as problem:
        failure = _category(problem)(_sentence(what, problem))
        failure.add_note(f"In the statement {what}")
        raise failure from problem
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        if isinstance(problem, ValueError):
            raise Invalid(f"The database cannot store a value that was given: {problem}") from problem
        raise Unavailable(f"The database connection was lost ({what}). Try again.") from problem
    except TimeoutError as problem:
        raise Unavailable(
            f"The database did not answer in time ({what}). Try again, or raise RECOLLECT_DATABASE_TIMEOUT_SECONDS."
        ) from problem
    except OSError as problem:
        reason = problem.strerror or str(problem) or type(problem).__name__
        raise Unavailable(
            f"The database cannot be reached: {reason}. Is it running, and is RECOLLECT_DATABASE_URL right?"
        ) from problem


def _category(problem: asyncpg.PostgresError) -> type[RecollectError]:
    return _BY_SQLSTATE_CLASS.get((problem.sqlstate or "")[:2], Unavailable)


# What a caller can act on; which statement it was is in the note of the error, for tracebacks.
_PLAIN = {
    "23503": "A record of {table} refers to something that is not stored here",
    "23505": "Another record of {table} already has this place",
}


def _sentence(what: str, problem: asyncpg.PostgresError) -> str:
    if problem.sqlstate in _PLAIN:
        return _PLAIN[problem.sqlstate].format(table=problem.table_name or "this kind")
    if _category(problem) is Invalid:
        return f"The database cannot store a value that was given: {problem.args[0]} ({problem.sqlstate})"
    return f"The database refused {what}: {problem.args[0] if problem.args else 'no reason given'} ({problem.sqlstate})"
