"""The error categories: everything Recollect raises on purpose is one of these."""


class RecollectError(Exception):
    """Base of every category. The message is a sentence that a user can act on."""


class Invalid(RecollectError, ValueError):
    """The caller's input is wrong; nothing was stored."""


class NotFound(RecollectError):
    """What the caller named does not exist here."""


class AccessDenied(RecollectError):
    """The caller may not do this."""


class Forbidden(AccessDenied):
    """The caller is known, and the role or the limits of the key do not allow this."""


class Conflict(RecollectError):
    """The request contradicts what is already stored."""


class LimitReached(RecollectError):
    """A limit of size, rate or budget was hit; the message names it."""

    retry_after: int | None = None
    """In how many seconds the same request may succeed, if that is known."""


class Unavailable(RecollectError):
    """A service that Recollect needs does not answer; trying again may help."""


class Misconfigured(RecollectError):
    """The deployment must change before this can work; the message says how."""


def category(problem: BaseException) -> str:
    """The name of an error's category, as metadata, spans and figures have it; never the message."""
    for kind in type(problem).__mro__:
        if RecollectError in kind.__bases__:
            return kind.__name__
    return type(problem).__name__
