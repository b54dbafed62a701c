"""Giants: owners with so many passages that their vectors need an index of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query

# Up to here an exact scan is quick; an index for everybody would slow every write and find little for the small.
THRESHOLD = 20_000
MAX_GIANTS = 20

# An index is renewed when this part of its owner's vectors stands above the watermark.
RENEW_SHARE = 0.2


class _Sql(Queries, file="giants.sql"):
    sizes: Query
    size: Query
    is_larger: Query
    extent: Query
    known: Query
    find: Query
    remember: Query
    forget: Query
    nearest: Query
    nearest_of_all: Query


@dataclass(frozen=True, slots=True)
class Giant:
    """An owner, or None for the whole namespace, whose vectors of a model are indexed up to the watermark."""

    owner: str | None
    model: str
    watermark: int
    index_name: str
    dimensions: int


class Giants:
    """Knows the indexes and searches through them; building them is the maintenance flow's work."""

    async def large_owners(self, db: Statements, model: str) -> dict[str | None, int]:
        """Owners above the threshold and their sizes, the namespace itself (None) among them."""
        whole = int((await db.one(_Sql.size, model=model))["size"])
        if whole <= THRESHOLD:
            return {}
        rows = await db.all(_Sql.sizes, model=model, threshold=THRESHOLD)
        return {None: whole} | {row["owner"]: row["size"] for row in rows}

    async def large_among(self, db: Statements, model: str, owners: Sequence[str]) -> list[str]:
        """Those of some owners who are above the threshold."""
        return [
            owner
            for owner in owners
            if (await db.one(_Sql.is_larger, model=model, owner=owner, threshold=THRESHOLD))["larger"]
        ]

    async def known(self, db: Statements) -> list[Giant]:
        """Every index of the namespace."""
        return [_giant(*row) for row in await db.all(_Sql.known)]

    async def find(self, db: Statements, owner: str | None, model: str) -> Giant | None:
        """The index to search with, if this owner has one."""
        row = await db.first(_Sql.find, owner=owner or "", whole=owner is None, model=model)
        return None if row is None else _giant(*row)

    async def extent(self, db: Statements, owner: str | None, model: str, watermark: int) -> tuple[int, int]:
        """How many vectors stand above a watermark, and the highest id of all."""
        row = await db.one(_Sql.extent, model=model, owner=owner or "", whole=owner is None, watermark=watermark)
        return row["above"], row["highest"] or 0

    async def remember(self, tx: Transaction, giant: Giant) -> None:
        """From now on searches use this index."""
        await tx.all(
            _Sql.remember,
            owner=giant.owner or "",
            whole=giant.owner is None,
            model=giant.model,
            watermark=giant.watermark,
            index_name=giant.index_name,
            dimensions=giant.dimensions,
        )

    async def forget(self, tx: Transaction, giant: Giant) -> None:
        """From now on searches scan."""
        await tx.all(_Sql.forget, owner=giant.owner or "", whole=giant.owner is None, model=giant.model)

    async def nearest(self, db: Statements, giant: Giant, vector: str, limit: int, passages: int) -> list[int]:
        """The items of a giant's nearest passages, the nearest first, each by its nearest: fewer if some have many."""
        statement = _Sql.nearest_of_all if giant.owner is None else _Sql.nearest
        owner = {} if giant.owner is None else {"owner": giant.owner}
        rows = await db.all(
            _sized(statement, giant.dimensions),
            vector=vector,
            model=giant.model,
            limit=limit,
            passages=passages,
            watermark=giant.watermark,
            **owner,
        )
        return [row["id"] for row in rows]


def _giant(owner: str, whole: bool, model: str, watermark: int, index_name: str, dimensions: int) -> Giant:
    return Giant(None if whole else owner, model, watermark, index_name, dimensions)


@cache
def _sized(query: Query, dimensions: int) -> Query:
    """The same statement for vectors of another size, which an index only serves if its own size is written there."""
    return replace(query, text=query.text.replace("halfvec(384)", f"halfvec({dimensions:d})"))
