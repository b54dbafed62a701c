"""Records under keys, and the checkpoints of threads."""

import json
from datetime import datetime
from typing import Any

from recollect import checks
from recollect.errors import Invalid
from recollect.flows.capabilities import Capabilities
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.keyed import operations
from recollect.flows.keyed.checkpoints import MAX_NAME_BYTES
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import UUIDS, Ids, IdType, Item, Kind, Owned, SessionOwners, as_json, in_feed
from recollect.flows.kinds.rules import Fields
from recollect.memory import checkpoints, keyed_records
from recollect.memory.index.passages import Source, analyse
from recollect.storage.database import Statements, Transaction


def check_record(fields: Fields) -> None:
    """A record has the id that follows from its owner, path and key, and what a put would take."""
    asked = operations.PutRecord(tuple(fields["path"]), fields["key"], fields["value"], fields["texts"])
    record = operations.new_record(fields["user_id"], asked)
    if str(record.id) != fields["id"]:
        raise Invalid("id does not follow from user_id, path and key")


def record_source(fields: Fields, _: SessionOwners) -> Source | None:
    """The texts that it is found by, perhaps none, and its value, which lists show."""
    excerpts = tuple(excerpt for text in fields["texts"] for excerpt in analyse(text))
    expires_at = fields["expires_at"]
    return Source(
        "record",
        fields["id"],
        excerpts,
        datetime.fromisoformat(fields["updated_at"]),
        owner=fields["user_id"],
        metadata=as_json({"path": fields["path"], "key": fields["key"]}),
        beside=as_json({"value": fields["value"]}),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
    )


async def remove_records(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Values under keys."""
    tally.add("records", len(await memory.keyed_records.remove(tx, ids)))


async def count_records(_memory: Capabilities, _db: Statements, ids: Ids, tally: Tally) -> None:
    """Each is one row."""
    tally.add("records", len(ids))


async def remove_threads(memory: Capabilities, tx: Transaction, ids: Ids, tally: Tally) -> None:
    """Every checkpoint of threads."""
    _tell(await memory.checkpoints.remove_threads(tx, ids), tally)


async def count_threads(memory: Capabilities, db: Statements, ids: Ids, tally: Tally) -> None:
    """The same, counted."""
    _tell(await memory.checkpoints.count(db, ids), tally)


def _tell(removed: checkpoints.Removed, tally: Tally) -> None:
    tally.add("checkpoints", removed.checkpoints)
    tally.add("checkpoint_values", removed.values)
    tally.add("checkpoint_writes", removed.writes)


def _owner(value: Any, name: str) -> None:
    """A user, or nobody."""
    if value != "":
        checks.identifier(value, name)


def _vectors(value: Any, name: str) -> None:
    for vector in value:
        try:
            numbers = json.loads(vector)
        except (TypeError, ValueError) as problem:
            raise Invalid(f"{name} must be a list of vectors, such as [1,0.5]") from problem
        checks.own_vector(numbers, name)


def _name(value: str, name: str) -> None:
    if len(value.encode()) > MAX_NAME_BYTES:
        raise Invalid(f"{name} is longer than {MAX_NAME_BYTES} bytes")


def _id(value: str, name: str) -> None:
    _name(checks.identifier(value, name), name)


def _versions(value: Any, name: str) -> None:
    rules.json_object(value, name)
    if not all(isinstance(version, str) for version in value.values()):
        raise Invalid(f"{name} must be a JSON object of texts")


THREADS = IdType(lambda thread_id: thread_id, "")
"""Threads go by the ids that the caller's framework gives them."""

RECORD = Kind(
    keyed_records.RECORD,
    {"user_id": _owner, "vectors": _vectors},
    check_record,
    item=Item(
        "record",
        UUIDS,
        remove_records,
        record_source,
        Owned(lambda memory, db, **page: memory.keyed_records.of_user(db, **page), count_records),
    ),
    feed=in_feed("record", keyed_records.RECORD),
    shown_with=("record_expiries",),
)
CHECKPOINT = Kind(
    checkpoints.RECORD,
    {
        "thread_id": _id,
        "checkpoint_ns": _name,
        "checkpoint_id": _id,
        "parent_id": _name,
        "user_id": _owner,
        "versions": _versions,
        "metadata": rules.json_object,
    },
    item=Item(
        "thread",
        THREADS,
        remove_threads,
        owned=Owned(lambda memory, db, **page: memory.checkpoints.of_user(db, **page), count_threads),
    ),
    shown_with=("checkpoint_values", "checkpoint_writes"),
)
CHECKPOINT_VALUE = Kind(
    checkpoints.VALUE_RECORD,
    {"thread_id": _id, "checkpoint_ns": _name, "channel": _name, "version": _name},
)
CHECKPOINT_WRITE = Kind(
    checkpoints.WRITE_RECORD,
    {
        "thread_id": _id,
        "checkpoint_ns": _name,
        "checkpoint_id": _id,
        "task_id": _name,
        "task_path": _name,
        "channel": _name,
    },
)

KEYED = (RECORD, CHECKPOINT, CHECKPOINT_VALUE, CHECKPOINT_WRITE)
