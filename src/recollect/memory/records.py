"""Records: everything that is stored, row by row, to move it from one database to another.

The other capabilities each know one kind of memory; here all are alike. A row goes out as the database writes it in
JSON, and comes in through the same door, so that a column that is added later is taken along by itself.
"""

import json
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from recollect.storage.database import Statements, Transaction
from recollect.storage.record import Record

Place = tuple[Any, ...]
"""The key of a record."""

FIRST: Place = ()
"""Before all records."""


class Outcome(Enum):
    """What became of a record."""

    ADDED = "added"
    SAME = "the same record is there"
    AKIN = "the record is there, and has changed since"
    DIFFERENT = "another record of its id is there"
    CLASH = "a record of another id is in its place"


LEFT_OUT = {
    "recollect_migrations": "the target database has its own ledger of the schema",
    "passages": "made from the items when they are imported",
    "passage_words": "made from passages",
    "passage_vectors": "made from passages by the indexer, with the target database's model",
    "passage_queue": "what the indexer has to do is known from the passages that were made",
    "term_stats": "counted by the indexer",
    "giants": "names indexes of one database",
    "record_expiries": "made from records",
    "embedding_models": "the target database chooses its own embedding model",
    "working_state": "a row to lock, made when it is needed",
    "api_keys": "keys are not transferred",
    "key_grants": "keys are not transferred",
    "oauth_clients": "clients register with this server",
    "connections": "they belong to keys, which are not transferred",
    "connection_tokens": "they belong to keys, which are not transferred",
    "changes": "they tell what happened in this database",
    "change_counters": "they count the changes of this database",
    "audit_lines": "they tell who used this database",
    "audit_heads": "they close the chain of lines in this database",
    "held": "items are screened when they are imported",
    "masked": "secrets are counted for this database",
    "activity": "recalls are counted for this database",
    "jobs": "they were done in this database",
    "quota_use": "it is counted for this database",
    "usage": "usage belongs to this database",
    "usage_days": "usage belongs to this database",
    "model_turns": "rate-limit state is transient",
    "model_requests": "requests under way are transient",
}
"""The tables that hold no record, and why."""


class Records:
    """Reads and writes rows as they are. Nothing is checked here but by the database."""

    async def all(self, db: Statements, kind: Record, user_id: str | None) -> AsyncIterator[str]:
        """Every record of a kind as JSON, in the order of its key; of one user, or of the whole namespace."""
        place: Place | None = FIRST
        while place is not None:
            records, place = await self.page(db, kind, user_id, place)
            for record in records:
                yield record

    async def page(
        self, db: Statements, kind: Record, user_id: str | None, behind: Place
    ) -> tuple[list[str], Place | None]:
        """The records behind a place, and where the next begin; None behind the last."""
        columns = [f"after_{column}" for column in kind.key]
        place = dict(zip(columns, behind or [None] * len(columns), strict=True))
        rows = await db.all(kind.page, user_id=user_id, limit=kind.page_size, **place)
        records = [row["record"] for row in rows]
        return records, tuple(rows[-1])[1:] if len(rows) == kind.page_size else None

    async def one(self, db: Statements, kind: Record, before: object, item_id: str) -> dict[str, Any] | None:
        """One record that is named by an id alone, which comes next behind `before`; None if it is not there."""
        row = await db.first(kind.page, user_id=None, limit=1, **{f"after_{column}": before for column in kind.key})
        return None if row is None or str(row[1]) != item_id else json.loads(row[0])

    async def shown(self, db: Statements, kind: Record, ids: Collection[str], most: int) -> dict[str, Any]:
        """Those of some records that exist, by id, as the feed shows them; texts have so many characters at most."""
        return {item_id: content for item_id, (content, _) in (await self.dated(db, kind, ids, most)).items()}

    async def dated(
        self, db: Statements, kind: Record, ids: Collection[str], most: int
    ) -> dict[str, tuple[dict[str, Any], datetime]]:
        """The same, each with the time from which it is."""
        if kind.shown is None:
            return {}
        rows = await db.all(kind.shown, ids=list(ids), most=most)
        return {row["item_id"]: (row["content"], row["at"]) for row in rows}

    async def restore(self, tx: Transaction, kind: Record, records: Sequence[str]) -> dict[tuple[str, ...], Outcome]:
        """Add records, JSON objects with their columns alone, that are not there; tells of each, by its key."""
        given = _given(tx, records)
        added = {kind.named(dict(row)) for row in await tx.all(kind.restore, records=given)}
        outcomes = dict.fromkeys(added, Outcome.ADDED)
        # Who imports moves what others said, so it counts for nobody but the key.
        if tx.tally.counts:
            new = [record for record in records if kind.named(json.loads(record)) in added]
            tx.tally.add(None, *new, rows=len(new))
        if len(added) == len(records):
            return outcomes
        for row in await tx.all(kind.compare, records=given):
            if row["same"] is None:
                outcome = Outcome.CLASH
            elif row["same"]:
                outcome = Outcome.SAME
            else:
                outcome = Outcome.AKIN if row.get("akin", False) else Outcome.DIFFERENT
            outcomes.setdefault(kind.named(dict(row)), outcome)
        return outcomes

    async def replace(self, tx: Transaction, kind: Record, records: Sequence[str]) -> None:
        """Put records in the place of those with their keys."""
        if kind.replace is None:
            raise ValueError(f"A {kind.name} is not replaced by an import")
        tx.tally.add(None, *records, rows=len(records))
        await tx.all(kind.replace, records=_given(tx, records))


def _given(tx: Transaction, records: Sequence[str]) -> str:
    """Records with their namespace, as one text."""
    here = json.dumps({"namespace": tx.namespace})[:-1]
    return "[" + ",".join(f"{here},{record[1:]}" for record in records) + "]"
