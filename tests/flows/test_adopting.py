"""What other programs wrote down is taken over once, and found by recall."""

import io
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.transfer.import_report import Report
from recollect.memory.index.search import Scope
from recollect.memory.memories import MemoryScope

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

GRAPH: list[dict[str, Any]] = [
    {"type": "relation", "from": "Mira Okafor", "to": "Harbour Lab", "relationType": "works_at"},
    {
        "type": "entity",
        "name": "Mira Okafor",
        "entityType": "person",
        "observations": ["Speaks fluent Portuguese", "Prefers meetings before noon"],
    },
    {"type": "entity", "name": "Harbour Lab", "entityType": "organization", "observations": []},
]


async def adopt_graph(engine: Engine, namespace: str, *lines: str) -> Report:
    return await engine.adopting.memory_json(namespace, io.BytesIO("\n".join(lines).encode()))


async def adopt_mem0(engine: Engine, namespace: str, content: object, user: str | None = None) -> Report:
    return await engine.adopting.mem0(namespace, io.BytesIO(json.dumps(content).encode()), user)


async def test_a_knowledge_graph_is_walked_and_its_observations_are_recalled(engine: Engine, namespace: str) -> None:
    lines = [json.dumps(entry) for entry in GRAPH]
    report = await adopt_graph(engine, namespace, *lines, "")
    assert (report.added, report.refusals) == ({"relation": 1, "entity": 2}, [])

    around = await engine.graph.neighbors(namespace, "Harbour Lab")
    (mira,) = around.neighbors
    assert (mira.name, mira.label, mira.relation, mira.direction) == ("Mira Okafor", "person", "works_at", "in")
    assert mira.properties == {"observations": ["Speaks fluent Portuguese", "Prefers meetings before noon"]}
    found = await engine.recall.recall(namespace, "Does Mira Okafor speak Portuguese?", top_k=1)
    assert [memory.text for memory in found.memories] == ["Mira Okafor: Speaks fluent Portuguese"]

    before = [line async for line in engine.exporting.lines(namespace)]
    again = await adopt_graph(engine, namespace, *lines)
    assert (again.added.total(), again.known) == (0, {"relation": 1, "entity": 2})
    assert [line async for line in engine.exporting.lines(namespace)] == before


async def test_a_graph_that_is_there_keeps_what_it_knows(engine: Engine, namespace: str) -> None:
    await engine.graph.add_node(namespace, "Scientist", "Mira Okafor", {"age": 41, "observations": ["Sings"]})
    await engine.graph.add_edge(namespace, "Mira Okafor", "Harbour Lab", "works_at", weight=0.25)
    report = await adopt_graph(engine, namespace, *(json.dumps(entry) for entry in GRAPH))
    assert report.known == {"relation": 1}
    (mira,) = (await engine.graph.neighbors(namespace, "Harbour Lab")).neighbors
    assert (mira.label, mira.weight, mira.properties["age"]) == ("Scientist", 0.25, 41)
    assert mira.properties["observations"] == ["Sings", *GRAPH[1]["observations"]]


async def test_lines_of_a_graph_that_cannot_be_taken_are_refused_alone(engine: Engine, namespace: str) -> None:
    bad = {
        "{": "not JSON",
        '{"name": "x"}': "type is None, neither entity nor relation",
        '{"type": "entity", "name": "x", "observations": []}': "the entity has no entityType",
        '{"type": "entity", "name": "x", "entityType": "y", "observations": "z"}': "observations must be a list",
        '{"type": "entity", "name": "x", "entityType": "y", "observations": ["z", 5]}': "an observation must be text",
        '{"type": "entity", "name": "", "entityType": "y", "observations": []}': "name is empty",
        '{"type": "relation", "from": "x", "relationType": "y"}': "the relation has no to",
        '{"type": "relation", "from": "x", "to": 5, "relationType": "y"}': "to must be text",
    }
    report = await adopt_graph(engine, namespace, *bad, json.dumps(GRAPH[2]))
    assert [refusal.place for refusal in report.refusals] == [f"line {number}" for number in range(1, len(bad) + 1)]
    for refusal, reason in zip(report.refusals, bad.values(), strict=True):
        assert reason in refusal.reason
    assert report.added == {"entity": 1}
    records = [json.loads(line) async for line in engine.exporting.lines(namespace)]
    assert [record["kind"] for record in records] == ["recollect-export", "graph_node", "end"]


async def test_memories_of_mem0_keep_their_ids_their_times_and_what_was_said_of_them(
    engine: Engine, namespace: str
) -> None:
    own = uuid4()
    entries = [
        {
            "id": str(own),
            "memory": "Prefers window judges on night trains",
            "user_id": "mira",
            "agent_id": None,
            "run_id": "trip",
            "hash": "abc",
            "metadata": {"source": "chat", "category": "trips"},
            "categories": ["travel", "user_preferences"],
            "created_at": "2024-05-01T12:00:00.123456-07:00",
            "updated_at": "2024-06-01T12:00:00Z",
        },
        {"id": "m-2", "memory": "Has a brother in Lagos", "user_id": "mira", "categories": ["family"]},
        {"id": "m-3", "memory": "has a brother in Lagos.", "user_id": "mira"},
        {"id": "m-4", "memory": "Keeps bees"},
        {"id": "m-4", "memory": "Keeps no bees"},
    ]
    report = await adopt_mem0(engine, namespace, {"results": entries}, user="ben")
    assert (report.added, report.known, report.refusals) == ({"memory": 3}, {"memory": 2}, [])

    memory = await engine.memories.get(namespace, str(own))
    assert memory.scope == MemoryScope("mira", None, "trip")
    assert memory.category == "preference"
    kept = {"source": "chat", "mem0_category": "trips", "mem0": {"categories": ["travel", "user_preferences"]}}
    assert memory.metadata == kept
    assert memory.created_at.isoformat() == "2024-05-01T19:00:00.123456+00:00"
    last_year = datetime(2025, 1, 1, tzinfo=UTC)
    before = await engine.recall.recall(namespace, "window on night trains", Scope(owner="mira", as_of=last_year))
    assert before.memories == [], "it was not known here before it was imported"
    assert [entry.event for entry in await engine.memories.history(namespace, str(own))] == ["create"]
    of_mira = [json.loads(line)["kind"] async for line in engine.exporting.lines(namespace, "mira")]
    assert of_mira == ["recollect-export", "memory", "memory", "memory_history", "memory_history", "end"]
    found = await engine.memories.search(namespace, "Who is family in Lagos?", MemoryScope("mira"), limit=1)
    assert (found[0].memory.text, found[0].memory.category) == ("Has a brother in Lagos", "fact")
    (bees,) = (await engine.memories.newest(namespace, MemoryScope("ben"))).memories
    assert bees.text == "Keeps bees"
    same = await engine.memories.add(namespace, "has a brother in Lagos", "fact", MemoryScope("mira"))
    assert same.what == "existing"

    again = await adopt_mem0(engine, namespace, entries, user="ben")
    assert (again.added.total(), again.known) == (0, {"memory": 5})


async def test_memories_of_mem0_that_cannot_be_taken_are_refused_alone(engine: Engine, namespace: str) -> None:
    bad: list[tuple[object, str]] = [
        ("text", "not a JSON object"),
        ({"user_id": "u"}, "memory must be text"),
        ({"memory": " ", "user_id": "u"}, "memory is empty"),
        ({"memory": "whose?"}, "has no user_id, agent_id or run_id"),
        ({"memory": "when?", "user_id": "u", "created_at": "yesterday"}, "created_at is not a time"),
        ({"memory": "who?", "user_id": 5}, "user_id must be text"),
        ({"memory": "what?", "user_id": "u", "metadata": "x"}, "metadata must be a JSON object"),
    ]
    good = {"memory": "Keeps bees", "agent_id": "bot", "id": "not a uuid"}
    report = await adopt_mem0(engine, namespace, [*(entry for entry, _ in bad), good])
    assert [refusal.place for refusal in report.refusals] == [f"record {number}" for number in range(1, len(bad) + 1)]
    for refusal, (_, reason) in zip(report.refusals, bad, strict=True):
        assert reason in refusal.reason
    assert report.added == {"memory": 1}
    (memory,) = (await engine.memories.newest(namespace)).memories
    assert isinstance(memory.id, UUID)


@pytest.mark.parametrize("content", [b"", b"{", b"5", b'{"data": []}', b"\xff"])
async def test_a_file_that_is_not_of_mem0_is_refused_whole(engine: Engine, namespace: str, content: bytes) -> None:
    with pytest.raises(Invalid):
        await engine.adopting.mem0(namespace, io.BytesIO(content), None)
