"""Files: writes, reads and deletes the files of memory stores, each findable by recall when the call returns."""

from dataclasses import dataclass, replace
from uuid import UUID

from recollect import checks
from recollect.errors import Conflict, Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.flows.kinds.stores import FILE, STORE, source_of
from recollect.flows.stores import rules
from recollect.flows.stores.pages import Page
from recollect.flows.stores.stores import MAX_LISTED, SINCE, UNTIL, Moment, require_open
from recollect.memory.changes import Change, Event
from recollect.memory.store_files import FileVersion, StoredFile, VersionFilter
from recollect.memory.stores import Store
from recollect.storage.database import Database, Statements, Transaction

MAX_FILES = 2_000
"""In one store, so that to list a folder is always quick."""

# Of a list that has contents.
MAX_LISTED_IN_FULL = 20

MAX_DEPTH = rules.MAX_SEGMENTS


class PathTaken(Conflict):
    """A file is at a path, above it or below it, where another cannot be."""

    def __init__(self, path: str, file_id: UUID, at: str) -> None:
        super().__init__(f"The path {path} is taken by the memory at {at}: choose another path, or update that memory")
        self.file_id = file_id
        self.path = at


class Stale(Conflict):
    """A file is no longer what the writer believes."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a file shall become; None keeps its path or content. With a hash, only if that is its present content's."""

    path: str | None = None
    content: str | None = None
    expected_sha256: str | None = None


class Files(MasksSecrets):
    """Every write locks the store, so that two writers take turns."""

    def __init__(self, database: Database, capabilities: Capabilities, passage_writer: PassageWriter) -> None:
        self._database = database
        self._stores = capabilities.stores
        self._files = capabilities.store_files
        self._passages = capabilities.passages
        self._changes = capabilities.changes
        self._passage_writer = passage_writer

    @masks("path", "content")
    async def create(self, namespace: str, store_id: str, path: str, content: str) -> StoredFile:
        """A new file; never in place of another."""
        rules.path(path)
        rules.content(content)
        prepared = await self._prepared(namespace, path, content)
        async with self._database.transaction(namespace) as tx:
            store = await self._locked_store(tx, store_id)
            require_open(store)
            await self._require_free(tx, store.id, path)
            if await self._files.count(tx, store.id) >= MAX_FILES:
                raise Invalid(f"The memory store has {MAX_FILES:,} memories: delete some, or use another store")
            file = await self._files.add(tx, store.id, store.user_id, path, content)
            await self._index(tx, "add", file, prepared)
        self._committed(namespace, prepared)
        return file

    async def find(self, namespace: str, store_id: str, file_id: str) -> StoredFile:
        """A file by its id, `mem_...`."""
        async with self._database.reading(namespace) as db:
            store = await self._store(db, store_id)
            file = await self._files.find(db, store.id, rules.required_id(rules.FILE, file_id))
        return rules.known(file, rules.FILE, file_id)

    @masks("path", counts=False)
    async def find_at(self, namespace: str, store_id: str, path: str) -> StoredFile | None:
        """The file at a path, if there is one."""
        checks.storable(path, "path")
        async with self._database.reading(namespace) as db:
            store = await self._store(db, store_id)
            found = await self._files.at_paths(db, store.id, [path], with_content=True, with_held=True)
        return found.get(path)

    @masks("edit")
    async def change(self, namespace: str, store_id: str, file_id: str, edit: Edit) -> StoredFile:
        """Another content or path, or both. What is so already stays as it is, and gets no version."""
        if edit.path is not None:
            rules.path(edit.path)
        if edit.content is not None:
            rules.content(edit.content)
        while True:
            seen = await self.find(namespace, store_id, file_id)
            wanted = _edited(seen, edit)
            prepared = await self._prepared(namespace, wanted.path, wanted.content or "")
            async with self._database.transaction(namespace) as tx:
                store = await self._locked_store(tx, store_id)
                require_open(store)
                file = await self._locked_file(tx, store, file_id)
                wanted = _edited(file, edit)
                if wanted == file:
                    return file
                _require(file, edit.expected_sha256)
                if file.version_id != seen.version_id:
                    continue  # somebody was faster, and the passages may be of what it was
                if wanted.path != file.path:
                    await self._require_free(tx, store.id, wanted.path, file.id)
                changed = await self._files.change(tx, file, wanted.path, wanted.content or "")
                await self._passages.remove_items(tx, FILE, [str(file.id)])
                await self._index(tx, "update", changed, prepared)
            self._committed(namespace, prepared)
            return changed

    async def delete(
        self, namespace: str, store_id: str, file_id: str, expected_sha256: str | None = None
    ) -> StoredFile:
        """Delete a file; its versions stay. With a hash, only if that is its present content's."""
        async with self._database.transaction(namespace) as tx:
            store = await self._locked_store(tx, store_id)
            file = await self._locked_file(tx, store, file_id)
            _require(file, expected_sha256)
            await self._files.delete(tx, file)
            await self._passages.remove_items(tx, FILE, [str(file.id)])
            await self._changes.record(tx, [Change("delete", FILE, str(file.id))])
        return file

    @masks("folder", counts=False)
    async def listing(
        self,
        namespace: str,
        store_id: str,
        folder: str = "/",
        depth: int = 0,
        behind: str = "",
        limit: int = MAX_LISTED_IN_FULL,
        *,
        with_content: bool = False,
    ) -> Page[StoredFile | str, str]:
        """What is in a folder, in the order of paths: files, and folders instead of what is below a depth."""
        checks.between(limit, 1, MAX_LISTED, "limit")
        checks.between(depth, 0, MAX_DEPTH, "depth")
        rules.folder(folder, "path_prefix")
        async with self._database.reading(namespace) as db:
            store = await self._store(db, store_id)
            found = await self._files.entries(db, store.id, folder, depth, behind, limit + 1)
            entries = Page.of(found, limit, str)
            paths = [entry for entry in entries.items if not entry.endswith("/")]
            files = await self._files.at_paths(db, store.id, paths, with_content=with_content)
        # A file that was deleted between the two statements is left out.
        items = [files.get(entry, entry) for entry in entries.items if entry in files or entry.endswith("/")]
        return Page(items, entries.behind)

    async def version(self, namespace: str, store_id: str, version_id: str) -> FileVersion:
        """A version by its id, `memver_...`."""
        async with self._database.reading(namespace) as db:
            store = await self._store(db, store_id)
            return await self._version(db, store, version_id)

    async def versions(
        self,
        namespace: str,
        store_id: str,
        chosen: VersionFilter,
        behind: Moment | None,
        limit: int,
        *,
        with_content: bool = False,
    ) -> Page[FileVersion, Moment]:
        """Versions of the files of a store, of deleted ones, too; newest first, from behind a place in that list."""
        checks.between(limit, 1, MAX_LISTED, "limit")
        checks.storable(chosen.author or "", "api_key_id")
        since, until = checks.optional_utc(chosen.since, SINCE), checks.optional_utc(chosen.until, UNTIL)
        within = replace(chosen, since=since, until=until)
        async with self._database.reading(namespace) as db:
            store = await self._store(db, store_id)
            found = await self._files.versions(db, store.id, within, behind, limit + 1, with_content=with_content)
        return Page.of(found, limit, lambda version: (version.created_at, version.id))

    async def redact(self, namespace: str, store_id: str, version_id: str) -> FileVersion:
        """Erase for good what a version says the file was. What the file is now must be changed or deleted instead."""
        async with self._database.transaction(namespace) as tx:
            store = await self._locked_store(tx, store_id)
            version = await self._version(tx, store, version_id)
            file = await self._files.find(tx, store.id, version.file_id)
            if file is not None and file.version_id == version.id:
                raise Conflict("The version is what the memory holds now: update or delete the memory, then redact it")
            if await self._files.redact(tx, store.id, version.id):
                version = await self._version(tx, store, version_id)
                # Of the store, which keeps versions also of files that are gone.
                await self._changes.record(tx, [Change("update", STORE, str(store.id), {"redacted": version_id})])
        return version

    async def _prepared(self, namespace: str, path: str, content: str) -> Prepared | None:
        """The passages of a content; None for one that has none."""
        return await self._passage_writer.prepare(namespace, content, path) if content.strip() else None

    async def _index(self, tx: Transaction, event: Event, file: StoredFile, prepared: Prepared | None) -> None:
        if prepared is not None:
            source = source_of(file.id, file.store_id, file.user_id, file.path, file.updated_at, prepared.excerpts)
            await self._passage_writer.add(tx, source, prepared)
        await self._changes.record(tx, [Change(event, FILE, str(file.id))])

    def _committed(self, namespace: str, prepared: Prepared | None) -> None:
        if prepared is not None:
            self._passage_writer.committed(namespace, prepared)

    async def _require_free(self, tx: Transaction, store_id: UUID, path: str, mover: UUID | None = None) -> None:
        if blocking := await self._files.in_the_way(tx, store_id, path, mover):
            raise PathTaken(path, *blocking)

    async def _store(self, db: Statements, store_id: str) -> Store:
        found = await self._stores.find(db, rules.required_id(rules.STORE, store_id))
        return rules.known(found, rules.STORE, store_id)

    async def _locked_store(self, tx: Transaction, store_id: str) -> Store:
        found = await self._stores.lock(tx, rules.required_id(rules.STORE, store_id))
        return rules.known(found, rules.STORE, store_id)

    async def _locked_file(self, tx: Transaction, store: Store, file_id: str) -> StoredFile:
        found = await self._files.lock(tx, store.id, rules.required_id(rules.FILE, file_id))
        return rules.known(found, rules.FILE, file_id)

    async def _version(self, db: Statements, store: Store, version_id: str) -> FileVersion:
        found = await self._files.version(db, store.id, rules.required_id(rules.VERSION, version_id))
        return rules.known(found, rules.VERSION, version_id)


def _edited(file: StoredFile, edit: Edit) -> StoredFile:
    """The file with what the edit gives it."""
    path = file.path if edit.path is None else edit.path
    return replace(file, path=path, content=file.content if edit.content is None else edit.content)


def _require(file: StoredFile, expected_sha256: str | None) -> None:
    if expected_sha256 is not None and expected_sha256 != file.sha256:
        raise Stale(f"The content of the memory at {file.path} has changed: read it again, then repeat the request")
