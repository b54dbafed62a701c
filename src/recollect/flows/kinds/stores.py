"""Memory stores, the files in them, and what the files were before."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from recollect import checks, origin
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import UUIDS, Ids, Item, Kind, Owned, SessionOwners, as_json, in_feed
from recollect.flows.kinds.rules import Fields
from recollect.flows.stores import rules as store_rules
from recollect.memory import store_files, stores
from recollect.memory.index.passages import Excerpt, Source, analyse
from recollect.storage.database import Statements, Transaction

STORE, FILE = "store", "file"


def source_of(
    file_id: UUID, store_id: UUID, user_id: str | None, path: str, at: datetime, excerpts: tuple[Excerpt, ...]
) -> Source:
    """The passages of a file, which tell where it is."""
    place = {
        "path": path,
        "memory_id": store_rules.shown(store_rules.FILE, file_id),
        "memory_store_id": store_rules.shown(store_rules.STORE, store_id),
    }
    return Source(FILE, str(file_id), excerpts, at, owner=user_id or "", metadata=as_json(place))


def file_source(fields: Fields, _: SessionOwners) -> Source | None:
    """The content, with the words of the path; an empty file is not found."""
    if not fields["content"].strip():
        return None
    return source_of(
        UUID(fields["id"]),
        UUID(fields["store_id"]),
        fields["user_id"],
        fields["path"],
        datetime.fromisoformat(fields["updated_at"]),
        analyse(fields["content"], fields["path"]),
    )


def check_file(fields: Fields) -> None:
    """The hash, by which writers know what they change, is that of the content."""
    if fields["sha256"] != store_files.digest(fields["content"]):
        raise Invalid("sha256 is not that of the content")


def check_version(fields: Fields) -> None:
    """A deleted or redacted version says nothing, any other what the file was."""
    says_nothing = fields["operation"] == "deleted" or fields["redacted_at"] is not None
    if (fields["content"] is None) != says_nothing or (fields["sha256"] is None) != says_nothing:
        raise Invalid("only a version that is deleted or redacted has no content and sha256, and must have none")
    if (fields["path"] is None) != (fields["redacted_at"] is not None):
        raise Invalid("only a version that is redacted has no path, and must have none")
    if fields["content"] is not None:
        check_file(fields)


async def remove_stores(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Stores with all that is and was in them."""
    await memory.stores.hold(tx, ids)
    files = await memory.store_files.in_stores(tx, ids)
    await remove_files(memory, tx, files, tally)
    tally.add("store_versions", await memory.store_files.remove_versions(tx, ids))
    tally.add("memory_stores", await memory.stores.remove(tx, ids))
    return {FILE: files}


async def count_stores(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted, without the files, which are counted by themselves."""
    tally.add("memory_stores", len(ids))
    tally.add("store_versions", await memory.store_files.count_versions_of_deleted(db, ids))


async def remove_files(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Files with all that they ever were; a deleted one has only that."""
    await memory.store_files.hold(tx, ids)
    files, versions = await memory.store_files.remove(tx, ids)
    tally.add("store_files", files)
    tally.add("store_versions", versions)


async def count_files(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted."""
    tally.add("store_files", len(ids))
    tally.add("store_versions", await memory.store_files.count_versions(db, ids))


STORE_ITEM = Item(
    STORE,
    UUIDS,
    remove_stores,
    owned=Owned(lambda memory, db, **page: memory.stores.of_user(db, **page), count_stores),
)
FILE_ITEM = Item(
    FILE,
    UUIDS,
    remove_files,
    file_source,
    Owned(lambda memory, db, **page: memory.store_files.of_user(db, **page), count_files),
)
STORE_KIND = Kind(
    stores.RECORD,
    {
        "name": store_rules.store_name,
        "description": store_rules.description,
        "metadata": store_rules.metadata,
        "user_id": checks.identifier,
    },
    item=STORE_ITEM,
    feed=in_feed(STORE, stores.RECORD),
)
FILE_KIND = Kind(
    store_files.RECORD,
    {"path": store_rules.path, "content": store_rules.content, "user_id": checks.identifier},
    check_file,
    references={"store_id": (stores.RECORD.name, "id")},
    item=FILE_ITEM,
    feed=in_feed(FILE, store_files.RECORD),
    shown_with=("store_versions",),
)
FILE_VERSION = Kind(
    store_files.VERSION_RECORD,
    {
        "operation": rules.one_of(*store_files.OPERATIONS),
        "path": store_rules.path,
        "content": store_rules.content,
        "user_id": checks.identifier,
        "author": rules.text_up_to(origin.MAX_AUTHOR_CHARACTERS),
        "door": rules.text_up_to(origin.MAX_AUTHOR_CHARACTERS),
        "redacted_by": rules.text_up_to(origin.MAX_AUTHOR_CHARACTERS),
    },
    check_version,
    references={"store_id": (stores.RECORD.name, "id")},
)

STORES = (STORE_KIND, FILE_KIND, FILE_VERSION)
