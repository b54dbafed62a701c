"""Storage failures of the library door, raised as the exception that its contract's callers catch."""

from typing import cast

from sqlalchemy.exc import DatabaseError

from recollect.errors import RecollectError


class StorageError(RecollectError, DatabaseError):
    """The database is unreachable, refused, or is not set up; the category is the cause."""

    def __init__(self, cause: RecollectError) -> None:
        DatabaseError.__init__(self, None, None, cause)
        self.__cause__ = cause

    def __reduce__(self) -> tuple[type["StorageError"], tuple[RecollectError]]:
        """Built from the cause alone, also in another process."""
        return type(self), (cast(RecollectError, self.orig),)

    def __str__(self) -> str:
        return str(self.orig)
