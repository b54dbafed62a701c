"""The nine tools of the MCP reference memory server, by its names, schemas and answers, over our graph."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from recollect.doors.caller import Caller
from recollect.doors.mcp.errors import as_sentence
from recollect.doors.mcp.tool import ADDS, DELETES, READS, Tools, Worded
from recollect.flows.cognitive.entities import EntityGraph, NewEntity
from recollect.memory.cognitive import entities as memory

TOOLS = Tools(as_sentence)


class Given(BaseModel):
    """What a client sends and reads again; what it says besides is ignored, as that server does."""

    model_config = ConfigDict(extra="ignore", strict=True, populate_by_name=True, serialize_by_alias=True)


class Entity(Given):
    """A thing, its type, and what is known of it."""

    name: Annotated[str, Field(description="The name of the entity")]
    entity_type: Annotated[str, Field(alias="entityType", description="The type of the entity")]
    observations: Annotated[list[str], Field(description="An array of observation contents associated with the entity")]

    @classmethod
    def of(cls, entity: memory.Entity | NewEntity) -> Self:
        """An entity as a client reads it."""
        return cls(name=entity.name, entity_type=entity.type, observations=list(entity.observations))


class Relation(Given):
    """How one thing relates to another."""

    source: Annotated[str, Field(alias="from", description="The name of the entity where the relation starts")]
    target: Annotated[str, Field(alias="to", description="The name of the entity where the relation ends")]
    relation: Annotated[str, Field(alias="relationType", description="The type of the relation")]

    @classmethod
    def of(cls, relation: memory.Relation) -> Self:
        """A relation as a client reads it."""
        return cls(source=relation.source, target=relation.target, relation=relation.relation)

    def stored(self) -> memory.Relation:
        """The same as it is stored."""
        return memory.Relation(self.source, self.relation, self.target)


class NewObservations(Given):
    """What to add to an entity."""

    entity_name: Annotated[
        str, Field(alias="entityName", description="The name of the entity to add the observations to")
    ]
    contents: Annotated[list[str], Field(description="An array of observation contents to add")]


class Deletion(Given):
    """What to take from an entity."""

    entity_name: Annotated[
        str, Field(alias="entityName", description="The name of the entity containing the observations")
    ]
    observations: Annotated[list[str], Field(description="An array of observations to delete")]


class AddedObservations(Given):
    """What was new to an entity."""

    entity_name: Annotated[str, Field(alias="entityName")]
    added: Annotated[list[str], Field(alias="addedObservations")]


class CreatedEntities(Given):
    """Those that were not there."""

    entities: list[Entity]


class CreatedRelations(Given):
    """Those that were not there."""

    relations: list[Relation]


class ObservationResults(Given):
    """What was new, in the order of the request."""

    results: list[AddedObservations]


class Done(Given):
    """That it is done, whether or not there was anything to do."""

    success: bool
    message: str


class KnowledgeGraph(Given):
    """Entities, and the relations at them."""

    entities: list[Entity]
    relations: list[Relation]

    @classmethod
    def of(cls, graph: EntityGraph) -> Self:
        """A graph as a client reads it."""
        return cls(entities=list(map(Entity.of, graph.entities)), relations=list(map(Relation.of, graph.relations)))


def _read(graph: EntityGraph) -> Worded[KnowledgeGraph]:
    shown = KnowledgeGraph.of(graph)
    return Worded(shown, _indented(shown.model_dump()))


def _listed(items: Sequence[BaseModel]) -> str:
    return _indented([item.model_dump() for item in items])


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _done(message: str) -> Worded[Done]:
    return Worded(Done(success=True, message=message), message)


@TOOLS.tool("Create Entities", ADDS)
async def create_entities(caller: Caller, entities: list[Entity]) -> Worded[CreatedEntities]:
    """Create multiple new entities in the knowledge graph"""
    given = [NewEntity(each.name, each.entity_type, each.observations) for each in entities]
    created = [Entity.of(each) for each in await caller.engine.entities.create(caller.namespace, given)]
    return Worded(CreatedEntities(entities=created), _listed(created))


@TOOLS.tool("Create Relations", ADDS)
async def create_relations(caller: Caller, relations: list[Relation]) -> Worded[CreatedRelations]:
    """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice"""
    given = [each.stored() for each in relations]
    created = [Relation.of(each) for each in await caller.engine.entities.relate(caller.namespace, given)]
    return Worded(CreatedRelations(relations=created), _listed(created))


@TOOLS.tool("Add Observations", ADDS)
async def add_observations(caller: Caller, observations: list[NewObservations]) -> Worded[ObservationResults]:
    """Add new observations to existing entities in the knowledge graph"""
    given = [(each.entity_name, each.contents) for each in observations]
    added = await caller.engine.entities.observe(caller.namespace, given)
    results = [AddedObservations(entity_name=name, added=new) for (name, _), new in zip(given, added, strict=True)]
    return Worded(ObservationResults(results=results), _listed(results))


@TOOLS.tool("Delete Entities", DELETES)
async def delete_entities(
    caller: Caller,
    entityNames: Annotated[list[str], Field(description="An array of entity names to delete")],  # noqa: N803
) -> Worded[Done]:
    """Delete multiple entities and their associated relations from the knowledge graph"""
    await caller.engine.entities.delete(caller.namespace, entityNames)
    return _done("Entities deleted successfully")


@TOOLS.tool("Delete Observations", DELETES)
async def delete_observations(caller: Caller, deletions: list[Deletion]) -> Worded[Done]:
    """Delete specific observations from entities in the knowledge graph"""
    given = [(each.entity_name, each.observations) for each in deletions]
    await caller.engine.entities.unobserve(caller.namespace, given)
    return _done("Observations deleted successfully")


@TOOLS.tool("Delete Relations", DELETES)
async def delete_relations(
    caller: Caller, relations: Annotated[list[Relation], Field(description="An array of relations to delete")]
) -> Worded[Done]:
    """Delete multiple relations from the knowledge graph"""
    await caller.engine.entities.unrelate(caller.namespace, [each.stored() for each in relations])
    return _done("Relations deleted successfully")


@TOOLS.tool("Read Graph", READS)
async def read_graph(caller: Caller) -> Worded[KnowledgeGraph]:
    """Read the entire knowledge graph"""
    return _read(await caller.engine.entities.read(caller.namespace))


@TOOLS.tool("Search Nodes", READS)
async def search_nodes(
    caller: Caller,
    query: Annotated[
        str,
        Field(description="The search query to match against entity names, types, and observation content"),
    ],
) -> Worded[KnowledgeGraph]:
    """Search for nodes in the knowledge graph based on a query"""
    return _read(await caller.engine.entities.search(caller.namespace, query))


@TOOLS.tool("Open Nodes", READS)
async def open_nodes(
    caller: Caller, names: Annotated[list[str], Field(description="An array of entity names to retrieve")]
) -> Worded[KnowledgeGraph]:
    """Open specific nodes in the knowledge graph by their names"""
    return _read(await caller.engine.entities.open(caller.namespace, names))
