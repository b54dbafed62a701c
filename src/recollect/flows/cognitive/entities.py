"""Entity memory: the graph as the MCP reference memory server has it, entities with observations and relations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from recollect import checks, origin
from recollect.errors import LimitReached, NotFound
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.forgetting.receipts import Tally
from recollect.flows.forgetting.removal import Removal
from recollect.flows.indexing.node_passages import NodePassages
from recollect.flows.kinds.cognitive import EDGE, NODE, NODE_ITEM
from recollect.memory.changes import Change
from recollect.memory.cognitive.entities import Entity, Relation
from recollect.storage.database import Database, Statements, Transaction

MAX_READ = 10_000
"""Entities, and relations, in one answer."""
MAX_AT_ONCE = 1_000
"""Entities, relations or lists of observations in one call."""


@dataclass(frozen=True, slots=True)
class NewEntity:
    """What a caller says of a thing."""

    name: str
    type: str
    observations: Sequence[str]


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """Entities, and the relations at them; the other end of a relation need not be among them."""

    entities: list[Entity]
    relations: list[Relation]


class EntityMemory(MasksSecrets):
    """Writes each call in one transaction. What is there already stays, and what is not there is deleted silently."""

    def __init__(
        self,
        database: Database,
        capabilities: Capabilities,
        node_passages: NodePassages,
        removal: Removal,
        written: Callable[[str], None],
    ) -> None:
        self._database = database
        self._graph = capabilities.graph
        self._entities = capabilities.entities
        self._changes = capabilities.changes
        self._node_passages = node_passages
        self._removal = removal
        self._written = written

    @masks("given")
    async def create(self, namespace: str, given: Sequence[NewEntity]) -> list[NewEntity]:
        """Create entities; returns those that were not there."""
        _check_number(given, "entities")
        wanted: dict[str, NewEntity] = {}
        for entity in given:
            checks.short_name(entity.name, "name")
            checks.short_name(entity.type, "entityType")
            _check_observations(entity.observations)
            wanted.setdefault(entity.name, entity)
        async with self._database.transaction(namespace) as tx:
            created = await self._entities.create(
                tx, {each.name: (each.type, list(each.observations)) for each in wanted.values()}
            )
            # Nodes that only edges have named so far become entities.
            ends = await self._graph.view().ends(tx, wanted.keys() - created.keys())
            named = {name: wanted[name] for name, end in sorted(ends.items()) if not end.labelled}
            await self._graph.label_ends(tx, {name: entity.type for name, entity in named.items()})
            await self._entities.observe(tx, {ends[name].id: list(each.observations) for name, each in named.items()})
            await self._node_passages.add(tx, [*created.values(), *(ends[name].id for name in named)])
            changes = [Change("add", NODE, str(each)) for each in created.values()]
            changes += [Change("update", NODE, str(ends[name].id)) for name in named]
            await self._changes.record(tx, changes)
        self._written(namespace)
        return [entity for name, entity in wanted.items() if name in created or name in named]

    @masks("given")
    async def relate(self, namespace: str, given: Sequence[Relation]) -> list[Relation]:
        """Create relations; returns those that were not there. An end that is no entity is only a name."""
        _check_number(given, "relations")
        for each in given:
            for value, name in zip(each, ("from", "relationType", "to"), strict=True):
                checks.short_name(value, name)
        names = sorted({name for each in given for name in (each.source, each.target)})
        async with self._database.transaction(namespace) as tx:
            created = await self._graph.create_ends(tx, dict.fromkeys(names))
            ends = await self._graph.view().ends(tx, names)
            await self._node_passages.judge(tx, [ends[name].id for name in sorted(created)])
            wanted = {(ends[each.source].id, ends[each.target].id, each.relation): each for each in given}
            edges = await self._graph.create_edges(tx, wanted)
            changes = [Change("add", NODE, str(ends[name].id)) for name in sorted(created)]
            changes += [Change("add", EDGE, str(edges[edge])) for edge in wanted if edge in edges]
            await self._changes.record(tx, changes)
        self._written(namespace)
        return [relation for edge, relation in wanted.items() if edge in edges]

    @masks("given")
    async def observe(self, namespace: str, given: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
        """Add observations to entities; returns those of each list that were not there, or refuses all of them."""
        _check_number(given, "observations")
        for _, contents in given:
            _check_observations(contents)
        added: list[list[str]] = []
        changed: dict[int, list[str]] = {}
        async with self._database.transaction(namespace) as tx:
            locked = await self._entities.lock(tx, [name for name, _ in given])
            for name, contents in given:
                if name not in locked:
                    raise NotFound(f"Entity with name {name} not found")
                known = changed.get(locked[name].id, list(locked[name].observations))
                new = [text for text in dict.fromkeys(contents) if text not in known]
                added.append(new)
                if new:
                    changed[locked[name].id] = [*known, *new]
            if changed:
                await self._graph.keep(tx, list(changed))
                await self._changed(tx, changed)
        self._written(namespace)
        return added

    @masks("given")
    async def unobserve(self, namespace: str, given: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Delete observations for good, also from what the entities were before."""
        origin.require("admin")
        _check_number(given, "deletions")
        changed: dict[int, list[str]] = {}
        async with self._database.transaction(namespace) as tx:
            locked = await self._entities.lock(tx, [name for name, _ in given])
            for name, contents in given:
                if (entity := locked.get(name)) is not None:
                    known = changed.get(entity.id, list(entity.observations))
                    changed[entity.id] = [text for text in known if text not in contents]
                    await self._entities.unobserve_versions(tx, entity.id, contents)
            if changed:
                await self._changed(tx, changed)
                await self._graph.drop_repeats(tx, list(changed))
        self._written(namespace)

    async def _changed(self, tx: Transaction, observations: Mapping[int, Sequence[str]]) -> None:
        for each in observations.values():
            checks.metadata({"observations": list(each)}, "observations")
        await self._entities.observe(tx, observations)
        await self._node_passages.renew(tx, list(observations))
        await self._changes.record(tx, [Change("update", NODE, str(each)) for each in observations])

    @masks("names")
    async def delete(self, namespace: str, names: Sequence[str]) -> None:
        """Delete nodes of these names with the relations at them, and all that they ever were."""
        origin.require("admin")
        _check_number(names, "entityNames")
        async with self._database.transaction(namespace) as tx:
            ends = await self._graph.view().ends(tx, names)
            if ends:
                await self._removal.items(tx, NODE_ITEM, sorted(end.id for end in ends.values()), Tally())
        self._written(namespace)

    @masks("given")
    async def unrelate(self, namespace: str, given: Sequence[Relation]) -> None:
        """Delete relations for good."""
        _check_number(given, "relations")
        async with self._database.transaction(namespace) as tx:
            gone = list(map(str, await self._entities.remove_relations(tx, given)))
            await self._changes.erase(tx, EDGE, gone)
            await self._changes.record(tx, [Change("forget", EDGE, each) for each in gone])
        self._written(namespace)

    async def read(self, namespace: str) -> EntityGraph:
        """The whole graph."""
        async with self._database.reading(namespace) as db:
            entities = await self._entities.all(db, MAX_READ + 1)
            relations = await self._entities.relations(db, None, MAX_READ + 1)
        return _limited(EntityGraph(entities, relations))

    @masks("text", counts=False)
    async def search(self, namespace: str, text: str) -> EntityGraph:
        """Entities with a text in their name, their type or an observation, and the relations at them."""
        async with self._database.reading(namespace) as db:
            return await self._with_relations(db, await self._entities.matching(db, text, MAX_READ + 1))

    @masks("names", counts=False)
    async def open(self, namespace: str, names: Sequence[str]) -> EntityGraph:
        """Entities by their names, and the relations at them."""
        _check_number(names, "names")
        async with self._database.reading(namespace) as db:
            return await self._with_relations(db, await self._entities.named(db, names))

    async def _with_relations(self, db: Statements, entities: list[Entity]) -> EntityGraph:
        relations = await self._entities.relations(db, [entity.id for entity in entities], MAX_READ + 1)
        return _limited(EntityGraph(entities, relations))


def _limited(graph: EntityGraph) -> EntityGraph:
    if max(len(graph.entities), len(graph.relations)) > MAX_READ:
        raise LimitReached(
            f"The answer would have more than {MAX_READ:,} entities or relations: search, or open some by name"
        )
    return graph


def _check_number(given: Sequence[object], name: str) -> None:
    if len(given) > MAX_AT_ONCE:
        raise LimitReached(f"{name} has more than {MAX_AT_ONCE:,} entries: send them in several calls")


def _check_observations(observations: Sequence[str]) -> None:
    for text in observations:
        checks.text(text, "an observation")
    checks.metadata({"observations": list(observations)}, "observations")
