"""Store files: small texts at paths in a store, and a version of each for everything that was ever done to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Literal
from uuid import UUID

from recollect import origin
from recollect.identifiers import uuid7
from recollect.storage.database import Statements, Transaction
from recollect.storage.record import PAGE_OF_TEXTS, Record
from recollect.storage.sql import Queries, Query

Operation = Literal["created", "modified", "deleted"]
OPERATIONS: tuple[Operation, ...] = ("created", "modified", "deleted")


class _Sql(Queries, file="store_files.sql"):
    add_version: Query
    add: Query
    hold_version: Query
    change: Query
    find: Query
    lock: Query
    hold: Query
    in_the_way: Query
    count_in_store: Query
    entries: Query
    at_paths: Query
    in_stores: Query
    some_in_store: Query
    of_user: Query
    remove: Query
    remove_versions: Query
    remove_versions_in_stores: Query
    count_versions: Query
    count_versions_of_deleted: Query
    version: Query
    newest_versions: Query
    redact: Query
    page_store_files: Query
    restore_store_files: Query
    compare_store_files: Query
    size_store_files: Query
    shown_store_files: Query
    page_store_versions: Query
    restore_store_versions: Query
    compare_store_versions: Query


RECORD = Record(
    "store_file",
    "store_files",
    ("id",),
    _Sql.page_store_files,
    _Sql.restore_store_files,
    _Sql.compare_store_files,
    size=_Sql.size_store_files,
    shown=_Sql.shown_store_files,
    page_size=PAGE_OF_TEXTS,
)
VERSION_RECORD = Record(
    "store_version",
    "store_versions",
    ("id",),
    _Sql.page_store_versions,
    _Sql.restore_store_versions,
    _Sql.compare_store_versions,
    page_size=PAGE_OF_TEXTS,
)


def digest(content: str) -> str:
    """By which a caller knows a content again."""
    return sha256(content.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it is now; the content is None where it was not asked for."""

    id: UUID
    store_id: UUID
    user_id: str | None
    path: str
    content: str | None
    size: int
    """Of the content, in bytes."""
    sha256: str
    version_id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FileVersion:
    """What was done to a file, and what it was since then: nothing if it was deleted, or the version is redacted."""

    id: UUID
    store_id: UUID
    file_id: UUID
    operation: Operation
    path: str | None
    content: str | None
    size: int | None
    sha256: str | None
    author: str | None
    created_at: datetime
    redacted_at: datetime | None
    redacted_by: str | None


@dataclass(frozen=True, slots=True)
class VersionFilter:
    """Which versions of a store; None means all."""

    file_id: UUID | None = None
    operation: Operation | None = None
    author: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class StoreFiles:
    """Keeps files and their versions. Whoever writes has locked the store."""

    async def add(self, tx: Transaction, store_id: UUID, user_id: str | None, path: str, content: str) -> StoredFile:
        """A new file."""
        file_id, version_id, hashed = uuid7(), uuid7(), digest(content)
        at = await self._add_version(tx, version_id, "created", store_id, file_id, user_id, path, content)
        await tx.all(
            _Sql.add,
            id=file_id,
            store_id=store_id,
            user_id=user_id,
            path=path,
            content=content,
            sha256=hashed,
            version_id=version_id,
            at=at,
        )
        size = len(content.encode())
        return StoredFile(file_id, store_id, user_id, path, content, size, hashed, version_id, at, at)

    async def change(self, tx: Transaction, file: StoredFile, path: str, content: str) -> StoredFile:
        """Another path or content of a file, which is locked."""
        version_id, hashed = uuid7(), digest(content)
        await tx.all(_Sql.hold_version, version_id=file.version_id, file_id=file.id)
        at = await self._add_version(tx, version_id, "modified", file.store_id, file.id, file.user_id, path, content)
        await tx.all(_Sql.change, id=file.id, path=path, content=content, sha256=hashed, version_id=version_id, at=at)
        size = len(content.encode())
        return StoredFile(
            file.id, file.store_id, file.user_id, path, content, size, hashed, version_id, file.created_at, at
        )

    async def delete(self, tx: Transaction, file: StoredFile) -> None:
        """Delete a file, which is locked; its versions stay, and one more says that it is gone."""
        await tx.all(_Sql.hold_version, version_id=file.version_id, file_id=file.id)
        await self._add_version(tx, uuid7(), "deleted", file.store_id, file.id, file.user_id, file.path, None)
        await tx.all(_Sql.remove, ids=[file.id])

    async def _add_version(
        self,
        tx: Transaction,
        version_id: UUID,
        operation: Operation,
        store_id: UUID,
        file_id: UUID,
        user_id: str | None,
        path: str,
        content: str | None,
    ) -> datetime:
        here = origin.current()
        row = await tx.one(
            _Sql.add_version,
            id=version_id,
            store_id=store_id,
            file_id=file_id,
            user_id=user_id,
            operation=operation,
            path=path,
            content=content,
            sha256=None if content is None else digest(content),
            author=here.author,
            door=here.door,
        )
        tx.tally.add(user_id, path, content)
        at: datetime = row["created_at"]
        return at

    async def find(self, db: Statements, store_id: UUID, file_id: UUID) -> StoredFile | None:
        """A file of a store, if there is one of this id."""
        row = await db.first(_Sql.find, store_id=store_id, id=file_id)
        return None if row is None else StoredFile(*row)

    async def lock(self, tx: Transaction, store_id: UUID, file_id: UUID) -> StoredFile | None:
        """The same, locked until the transaction ends."""
        row = await tx.first(_Sql.lock, store_id=store_id, id=file_id)
        return None if row is None else StoredFile(*row)

    async def hold(self, tx: Transaction, ids: Sequence[UUID]) -> None:
        """Lock some files, so that a change under way ends first."""
        await tx.all(_Sql.hold, ids=list(ids))

    async def in_the_way(
        self, tx: Transaction, store_id: UUID, path: str, except_id: UUID | None
    ) -> tuple[UUID, str] | None:
        """A file because of which there can be none at a path: at it, above it or below it."""
        folders = path.split("/")
        above = ["/".join(folders[:count]) for count in range(2, len(folders) + 1)]
        row = await tx.first(
            _Sql.in_the_way,
            store_id=store_id,
            except_id=except_id,
            above=above,
            below=f"{path}/",
            beyond=_beyond(f"{path}/"),
        )
        return None if row is None else (row["id"], row["path"])

    async def count(self, db: Statements, store_id: UUID) -> int:
        """How many files a store has."""
        return int((await db.one(_Sql.count_in_store, store_id=store_id))["files"])

    async def entries(
        self, db: Statements, store_id: UUID, folder: str, depth: int, behind: str, limit: int
    ) -> list[str]:
        """The next paths in a folder, both with a slash at the end; folders instead of what is below a depth."""
        rows = await db.all(
            _Sql.entries,
            store_id=store_id,
            prefix=folder,
            beyond=_beyond(folder),
            depth=depth,
            behind=behind,
            limit=limit,
        )
        return [row["entry"] for row in rows]

    async def at_paths(
        self, db: Statements, store_id: UUID, paths: Sequence[str], *, with_content: bool, with_held: bool = False
    ) -> dict[str, StoredFile]:
        """Those of some files that are there, by path; with contents, and with those that are held back, or without."""
        asked = {"with_content": with_content, "with_held": with_held}
        rows = await db.all(_Sql.at_paths, store_id=store_id, paths=list(paths), **asked)
        return {row["path"]: StoredFile(*row) for row in rows}

    async def in_stores(self, db: Statements, store_ids: Sequence[UUID]) -> list[UUID]:
        """The files of some stores."""
        return [row["id"] for row in await db.all(_Sql.in_stores, store_ids=list(store_ids))]

    async def some(self, db: Statements, store_id: UUID, limit: int) -> list[UUID]:
        """Some files of a store."""
        return [row["id"] for row in await db.all(_Sql.some_in_store, store_id=store_id, limit=limit)]

    async def of_user(self, db: Statements, user_id: str, behind: UUID, limit: int) -> list[UUID]:
        """The next files of a user behind an id."""
        return [row["id"] for row in await db.all(_Sql.of_user, user_id=user_id, behind=behind, limit=limit)]

    async def remove(self, tx: Transaction, ids: Sequence[UUID]) -> tuple[int, int]:
        """Delete files with their versions; returns how many there were of both."""
        files = await tx.all(_Sql.remove, ids=list(ids))
        return len(files), len(await tx.all(_Sql.remove_versions, file_ids=list(ids)))

    async def remove_versions(self, tx: Transaction, store_ids: Sequence[UUID]) -> int:
        """Delete what is left of stores whose files are gone; returns how many versions there were."""
        return len(await tx.all(_Sql.remove_versions_in_stores, store_ids=list(store_ids)))

    async def count_versions(self, db: Statements, file_ids: Sequence[UUID]) -> int:
        """How many versions some files have."""
        return int((await db.one(_Sql.count_versions, file_ids=list(file_ids)))["versions"])

    async def count_versions_of_deleted(self, db: Statements, store_ids: Sequence[UUID]) -> int:
        """How many versions some stores have of files that were deleted."""
        return int((await db.one(_Sql.count_versions_of_deleted, store_ids=list(store_ids)))["versions"])

    async def version(self, db: Statements, store_id: UUID, version_id: UUID) -> FileVersion | None:
        """A version in a store, if there is one of this id."""
        row = await db.first(_Sql.version, store_id=store_id, id=version_id)
        return None if row is None else FileVersion(*row)

    async def versions(
        self,
        db: Statements,
        store_id: UUID,
        chosen: VersionFilter,
        behind: tuple[datetime, UUID] | None,
        limit: int,
        *,
        with_content: bool,
    ) -> list[FileVersion]:
        """The next versions behind a place in the list, newest first."""
        time, version_id = behind or (None, None)
        rows = await db.all(
            _Sql.newest_versions,
            store_id=store_id,
            file_id=chosen.file_id,
            operation=chosen.operation,
            author=chosen.author,
            since=chosen.since,
            until=chosen.until,
            behind_time=time,
            behind_id=version_id,
            limit=limit,
            with_content=with_content,
        )
        return [FileVersion(*row) for row in rows]

    async def redact(self, tx: Transaction, store_id: UUID, version_id: UUID) -> bool:
        """Erase what a version says the file was; False if that has been done already."""
        author = origin.current().author
        return await tx.first(_Sql.redact, store_id=store_id, id=version_id, author=author) is not None


def _beyond(folder: str) -> str:
    """The first text behind all that is in a folder: a zero comes next after a slash."""
    return f"{folder[:-1]}0"
