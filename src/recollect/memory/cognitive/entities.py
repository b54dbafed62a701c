"""Entities: nodes of the graph as things with a type, of which observations are known."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recollect.storage.database import Statements, Transaction
from recollect.storage.sql import Queries, Query


class _Sql(Queries, file="entities.sql"):
    all: Query
    named: Query
    known: Query
    matching: Query
    lock: Query
    create: Query
    observe: Query
    unobserve_versions: Query
    relations: Query
    edges_named: Query
    remove_edge_versions: Query
    remove_edges: Query


@dataclass(frozen=True, slots=True)
class Entity:
    """A node that somebody has given a type."""

    id: int
    name: str
    type: str
    observations: tuple[str, ...]
    created_at: datetime


class KnownNode(NamedTuple):
    """A node with all of its properties."""

    id: int
    name: str
    label: str
    properties: Mapping[str, Any]
    created_at: datetime


class Relation(NamedTuple):
    """An edge by the names of its ends."""

    source: str
    relation: str
    target: str


class Entities:
    """Reads and changes what is known of nodes; edges are made by the graph."""

    async def all(self, db: Statements, limit: int) -> list[Entity]:
        """Entities, as many as asked for."""
        return list(map(_entity, await db.all(_Sql.all, limit=limit)))

    async def named(self, db: Statements, names: Sequence[str]) -> list[Entity]:
        """Those of some names that there are."""
        return list(map(_entity, await db.all(_Sql.named, names=list(names))))

    async def known(self, db: Statements, ids: Sequence[int]) -> list[KnownNode]:
        """All that is known of some nodes, entities or not."""
        return [KnownNode(*row) for row in await db.all(_Sql.known, ids=list(ids))]

    async def matching(self, db: Statements, text: str, limit: int) -> list[Entity]:
        """Those that have a text in their name, their type or an observation."""
        return list(map(_entity, await db.all(_Sql.matching, text=text, limit=limit)))

    async def lock(self, tx: Transaction, names: Sequence[str]) -> dict[str, Entity]:
        """Those of some names, which nobody else changes until the transaction ends."""
        return {row["name"]: _entity(row) for row in await tx.all(_Sql.lock, names=list(names))}

    async def create(self, tx: Transaction, entities: Mapping[str, tuple[str, Sequence[str]]]) -> dict[str, int]:
        """Create entities, name to type and observations, and tell which names no node had."""
        rows = await tx.all(
            _Sql.create,
            names=list(entities),
            labels=[label for label, _ in entities.values()],
            observations=[json.dumps(observations) for _, observations in entities.values()],
        )
        for row in rows:
            label, observations = entities[row["name"]]
            tx.tally.add(None, row["name"], label, *observations)
        return {row["name"]: row["id"] for row in rows}

    async def observe(self, tx: Transaction, observations: Mapping[int, Sequence[str]]) -> None:
        """Give entities that this transaction has locked other observations, by their ids."""
        texts = [json.dumps(each) for each in observations.values()]
        await tx.all(_Sql.observe, ids=list(observations), observations=texts)
        tx.tally.add(None, *texts, rows=len(texts))

    async def unobserve_versions(self, tx: Transaction, entity_id: int, observations: Sequence[str]) -> None:
        """Take observations out of what an entity was before."""
        await tx.all(_Sql.unobserve_versions, id=entity_id, observations=list(observations))

    async def relations(self, db: Statements, ids: Sequence[int] | None, limit: int) -> list[Relation]:
        """Edges that begin or end at some nodes; None means all."""
        rows = await db.all(_Sql.relations, ids=None if ids is None else list(ids), limit=limit)
        return [Relation(*row) for row in rows]

    async def remove_relations(self, tx: Transaction, relations: Sequence[Relation]) -> list[int]:
        """Delete edges, and what they were before; returns their ids."""
        rows = await tx.all(
            _Sql.edges_named,
            sources=[each.source for each in relations],
            relations=[each.relation for each in relations],
            targets=[each.target for each in relations],
        )
        ids = [row["id"] for row in rows]
        await tx.all(_Sql.remove_edge_versions, ids=ids)
        return [row["id"] for row in await tx.all(_Sql.remove_edges, ids=ids)]


def observations_in(value: Any) -> tuple[str, ...]:
    """What the property `observations` of a node says, if it is a list of texts."""
    return tuple(filter(None, map(str, value))) if isinstance(value, list) else ()


def _entity(row: Any) -> Entity:
    return Entity(row["id"], row["name"], row["label"], observations_in(row["observations"]), row["created_at"])
