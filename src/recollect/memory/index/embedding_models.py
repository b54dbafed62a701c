"""Embedding models: the one that a namespace uses, and the switch to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="embedding_models.sql"):
    state: Query
    lock: Query
    lock_for_change: Query
    settle_on: Query
    aim: Query
    time: Query
    flip: Query
    swept: Query
    claim: Query
    add: Query
    missing: Query
    requeue: Query
    others: Query
    remove_others: Query
    dimensions: Query
    sizes: Query


@dataclass(frozen=True, slots=True)
class State:
    """The model that searches ask, the one that the namespace moves to, and whether vectors of others are left."""

    active: str
    next: str | None
    switched_at: datetime | None
    leftovers: bool


class Outdated(NamedTuple):
    """A passage without a vector of the model that its namespace moves to."""

    id: int
    kind: str
    owner: str
    head: int | None
    """The first passage of its item; None for that one itself."""
    text: str


class EmbeddingModels:
    """Keeps the record of each namespace and works on its vectors; when to do what is the flow's to say."""

    async def state(self, db: Statements) -> State | None:
        """The record of a namespace; None before its first vector."""
        row = await db.first(_Sql.state)
        return None if row is None else State(*row)

    async def lock(self, tx: Transaction, first: str) -> State:
        """The record, locked against changes until this transaction ends; a new namespace settles on a model."""
        row = await tx.first(_Sql.lock)
        if row is None:
            await tx.all(_Sql.settle_on, first=first)
            row = await tx.one(_Sql.lock)
        return State(*row)

    async def lock_for_change(self, tx: Transaction, first: str) -> State:
        """The same, for changing it; waits for all who hold it."""
        await tx.all(_Sql.settle_on, first=first)
        return State(*await tx.one(_Sql.lock_for_change))

    async def aim(self, tx: Transaction, model: str | None, *, leaves: bool) -> None:
        """Begin to move to a model, or stop moving; `leaves` says that vectors of another are left behind."""
        await tx.all(_Sql.aim, model=model, leaves=leaves)

    async def flip(self, tx: Transaction, model: str) -> None:
        """Let searches ask another model."""
        await tx.all(_Sql.flip, model=model, at=(await tx.one(_Sql.time))["now"])

    async def swept(self, tx: Transaction) -> None:
        """Note that nothing is left of other models."""
        await tx.all(_Sql.swept)

    async def claim(self, tx: Transaction, old: str, new: str, after: int, limit: int) -> list[Outdated]:
        """Take passages above an id that lack the new model's vector, for this transaction."""
        return [Outdated._make(row) for row in await tx.all(_Sql.claim, old=old, new=new, after=after, limit=limit)]

    async def add(self, tx: Transaction, passages: Sequence[Outdated], model: str, vectors: Sequence[str]) -> None:
        """Store vectors of claimed passages."""
        await tx.all(
            _Sql.add,
            ids=[passage.id for passage in passages],
            kinds=[passage.kind for passage in passages],
            owners=[passage.owner for passage in passages],
            heads=[passage.head for passage in passages],
            vectors=list(vectors),
            model=model,
        )

    async def missing(self, db: Statements, old: str, new: str, at_most: int) -> int:
        """How many passages lack the new model's vector, up to a bound."""
        return int((await db.one(_Sql.missing, old=old, new=new, at_most=at_most))["missing"])

    async def requeue(self, tx: Transaction, old: str, new: str) -> None:
        """Let the indexer do the passages that lack the new model's vector."""
        await tx.all(_Sql.requeue, old=old, new=new)

    async def remove_others(self, tx: Transaction, keep: Sequence[str], after: int, limit: int) -> int | None:
        """Remove vectors of other models from the next passages above an id; the last of these, or None."""
        ids = [row["id"] for row in await tx.all(_Sql.others, after=after, keep=list(keep), limit=limit)]
        if not ids:
            return None
        await tx.all(_Sql.remove_others, ids=ids, keep=list(keep))
        return int(ids[-1])

    async def dimensions(self, db: Statements, model: str) -> int | None:
        """How many numbers the stored vectors of a model have; None if there are no such vectors."""
        row = await db.first(_Sql.dimensions, model=model)
        return None if row is None else int(row["dimensions"])

    async def sizes(self, db: Statements) -> dict[str, int]:
        """How many vectors there are of each model."""
        return {row["model"]: row["size"] for row in await db.all(_Sql.sizes)}
