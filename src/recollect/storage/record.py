"""Record: a row of a table as it is exported, imported and counted."""

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.storage.sql import Query

# Rows fetched at once. Whole texts may have 16 MB each; sessions are small, and each page of them is a sort of all.
PAGE = 100
PAGE_OF_TEXTS = 10
PAGE_OF_SESSIONS = 2000


@dataclass(frozen=True, slots=True)
class Record:
    """One kind of record: its table, what names a row of it in its namespace, and how it is read and written."""

    name: str
    table: str
    key: tuple[str, ...]
    page: Query
    restore: Query
    compare: Query
    """Compares given records with the stored ones: `same`, and for some kinds `akin`."""
    replace: Query | None = None
    """Puts given records in the place of those that have their keys; None if records are not replaced."""
    size: Query | None = None
    """Selects its rows up to a limit, to be counted; None if they are not counted."""
    page_size: int = PAGE
    shown: Query | None = None
    """Selects `item_id`, `content` and `at` of rows by ids, long texts cut; None if they are shown otherwise."""

    def named(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        """What names a record of this kind."""
        return tuple(str(fields[column]) for column in self.key)
