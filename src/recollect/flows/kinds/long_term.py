"""Documents, long-term memories with their history, and resources."""

from collections.abc import Mapping
from datetime import datetime

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import UUIDS, Ids, Item, Kind, Owned, SessionOwners, as_json
from recollect.flows.kinds.rules import Fields
from recollect.memory import documents, memories, resources
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Statements, Transaction

MEMORY = "memory"
PAST_MEMORY = "past_memory"
"""The kind of the passages of past versions, which only questions about the past find."""


def check_memory(fields: Fields) -> None:
    """A memory belongs to somebody."""
    if not (fields["user_id"] or fields["agent_id"] or fields["session_id"]):
        raise Invalid("the memory has no user_id, agent_id or session_id: it needs one of them")


def document_source(fields: Fields, _: SessionOwners) -> Source:
    """The whole text."""
    at = datetime.fromisoformat(fields["created_at"])
    return Source("document", fields["id"], analyse(fields["content"]), at, metadata=as_json(fields["metadata"]))


def memory_source(fields: Fields, _: SessionOwners) -> Source | None:
    """The text of a memory in force."""
    if fields["superseded_by"] is not None:
        return None
    return Source(
        MEMORY,
        fields["id"],
        analyse(fields["text"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        position=fields.get("position"),
        category=fields["category"],
        metadata=as_json(fields["metadata"]),
        since=_moment(fields.get("since") or fields["created_at"]),
        valid_from=_moment(fields.get("valid_from")),
        valid_until=_moment(fields.get("valid_until")),
        expires_at=_moment(fields.get("expires_at")),
    )


def version_source(fields: Fields, _: SessionOwners) -> Source:
    """The text that a memory had, for questions about that time."""
    return Source(
        PAST_MEMORY,
        memories.past_item(fields["memory_id"], fields["number"]),
        analyse(fields["text"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        position=fields["position"],
        category=fields["category"],
        metadata=as_json(fields["metadata"]),
        since=_moment(fields["since"]),
        ended_at=_moment(fields["until"]),
        valid_from=_moment(fields["valid_from"]),
        valid_until=_moment(fields["valid_until"]),
        expires_at=_moment(fields["expires_at"]),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def resource_source(fields: Fields, _: SessionOwners) -> Source:
    """The text, with the words of its title."""
    return Source(
        "resource",
        fields["id"],
        analyse(fields["content"], fields["title"]),
        datetime.fromisoformat(fields["updated_at"]),
        owner=fields["user_id"],
        metadata=as_json(fields["metadata"]),
        realm=fields["realm"],
    )


async def remove_documents(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Whole texts."""
    tally.add("documents", sum([await memory.documents.remove(tx, item_id) for item_id in ids]))


async def remove_memories(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> Mapping[str, Ids]:
    """Memories, what they were before, and all that ever happened to them."""
    versions = await memory.memories.versions(tx, ids)
    count, history = await memory.memories.erase(tx, ids)
    tally.add("memories", count)
    tally.add("memory_versions", len(versions))
    tally.add("memory_history", history)
    return {PAST_MEMORY: versions}


async def count_memories(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted."""
    count, history = await memory.memories.count(db, ids)
    versions = await memory.memories.versions(db, ids)
    tally.add("memory_versions", len(versions))
    tally.add("passages", await memory.passages.count_of_items(db, PAST_MEMORY, versions))
    tally.add("memories", count)
    tally.add("memory_history", history)


async def remove_resources(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Texts under a URI."""
    tally.add("resources", await memory.resources.remove(tx, ids))


async def count_resources(_memory: Capabilities, _db: Statements, ids: Ids, tally: Tally) -> None:
    """Each is one row."""
    tally.add("resources", len(ids))


DOCUMENT = Kind(
    documents.RECORD,
    {"content": checks.text, "embedding": checks.embedding, "metadata": rules.json_object},
    item=Item("document", UUIDS, remove_documents, document_source),
)
MEMORY_ITEM = Item(
    "memory",
    UUIDS,
    remove_memories,
    memory_source,
    Owned(lambda memory, db, **page: memory.memories.of_user(db, **page), count_memories),
)
MEMORY_KIND = Kind(
    memories.RECORD,
    {
        "text": checks.text,
        "category": rules.one_of(*memories.CATEGORIES),
        "metadata": rules.json_object,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "session_id": rules.own_session,
        "position": rules.at_least(0),
        "key": checks.short_name,
    },
    check_memory,
    later=frozenset(
        ("position", "since", "valid_from", "valid_until", "key", "slot", "expires_at", "pinned", "sources")
    ),
    item=MEMORY_ITEM,
    shown_with=("memory_history", "memory_versions"),
)
MEMORY_VERSION = Kind(
    memories.VERSION_RECORD,
    {
        "number": rules.at_least(1),
        "text": checks.text,
        "category": rules.one_of(*memories.CATEGORIES),
        "metadata": rules.json_object,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "session_id": checks.identifier,
        "position": rules.at_least(0),
        "key": checks.short_name,
    },
    references={"memory_id": (MEMORY, "id")},
    part_source=version_source,
)
MEMORY_HISTORY = Kind(
    memories.HISTORY_RECORD,
    {
        "number": rules.at_least(1),
        "event": rules.one_of(*memories.EVENTS),
        "old_memory": checks.optional_text,
        "new_memory": checks.optional_text,
        "user_id": checks.identifier,
        "session_id": checks.identifier,
    },
    later=frozenset({"detail"}),
    references={"memory_id": (MEMORY, "id")},
)
RESOURCE = Kind(
    resources.RECORD,
    {
        "user_id": checks.identifier,
        "uri": rules.text_up_to(resources.MAX_URI_CHARACTERS),
        "title": checks.optional_text,
        "content": checks.text,
        "metadata": rules.json_object,
    },
    item=Item(
        "resource",
        UUIDS,
        remove_resources,
        resource_source,
        Owned(lambda memory, db, **page: memory.resources.of_user(db, **page), count_resources),
    ),
)

LONG_TERM = (DOCUMENT, MEMORY_KIND, MEMORY_VERSION, MEMORY_HISTORY)
