"""Documents, long-term memories with their history, and resources."""

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
        "memory",
        fields["id"],
        analyse(fields["text"]),
        datetime.fromisoformat(fields["created_at"]),
        owner=fields["user_id"] or "",
        agent_id=fields["agent_id"],
        session_id=fields["session_id"],
        position=fields.get("position"),
        category=fields["category"],
        metadata=as_json(fields["metadata"]),
    )


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


async def remove_memories(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Memories, and all that ever happened to them."""
    count, history = await memory.memories.erase(tx, ids)
    tally.add("memories", count)
    tally.add("memory_history", history)


async def count_memories(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted."""
    count, history = await memory.memories.count(db, ids)
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
MEMORY = Kind(
    memories.RECORD,
    {
        "text": checks.text,
        "category": rules.one_of(*memories.CATEGORIES),
        "metadata": rules.json_object,
        "user_id": checks.identifier,
        "agent_id": checks.identifier,
        "session_id": rules.own_session,
        "position": rules.at_least(0),
    },
    check_memory,
    later=frozenset({"position"}),
    item=MEMORY_ITEM,
    shown_with=("memory_history",),
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
    references={"memory_id": ("memory", "id")},
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

LONG_TERM = (DOCUMENT, MEMORY, MEMORY_HISTORY)
