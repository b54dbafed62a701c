"""Conditions on metadata: what each operator finds, in a search and in a list, and what is refused."""

from typing import Any, Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.long_term.memory_requests import Chosen
from recollect.flows.search.metadata_where import MAX_CONDITIONS, MAX_NESTING
from recollect.memory.memories import MemoryScope

ANN = MemoryScope(user_id="ann")
SHELF: dict[str, dict[str, Any]] = {
    "apple": {"price": 10, "colour": "red", "tags": ["sweet", "crisp"]},
    "lemon": {"price": 5.5, "colour": "yellow", 'say "it"': True},
    "cherry": {"price": "cheap", "colour": "Dark Red"},
    "melon": {},
}


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


async def fill(engine: Engine, namespace: str) -> None:
    for name, metadata in SHELF.items():
        await engine.memories.add(namespace, f"The shop sells {name} fruit.", "fact", ANN, metadata)


async def found(engine: Engine, namespace: str, where: dict[str, Any]) -> set[str]:
    """The same by search, by search in an agent's scope with none, and by list."""
    chosen = Chosen(where=where)
    hits = await engine.memories.search(namespace, "fruit of the shop", ANN, chosen)
    by_search = {hit.memory.text.split()[3] for hit in hits}
    page = await engine.memories.newest(namespace, ANN, chosen=chosen)
    assert {memory.text.split()[3] for memory in page.memories} == by_search
    return by_search


async def test_every_operator_finds_what_it_names(engine: Engine, namespace: str) -> None:
    await fill(engine, namespace)
    for where, names in (
        ({"colour": "red"}, {"apple"}),
        ({"price": {"eq": 10}}, {"apple"}),
        ({"price": {"gt": 5.5}}, {"apple"}),
        ({"price": {"gte": 5.5, "lt": 10}}, {"lemon"}),
        ({"price": {"lte": 10}}, {"apple", "lemon"}),
        ({"colour": {"ne": "red"}}, {"lemon", "cherry", "melon"}),
        ({"price": {"ne": 10}}, {"lemon", "cherry", "melon"}),
        ({"colour": {"in": ["red", "yellow"]}}, {"apple", "lemon"}),
        ({"colour": {"nin": ["red", "yellow"]}}, {"cherry", "melon"}),
        ({"colour": {"in": []}}, set()),
        ({"colour": {"contains": "Red"}}, {"cherry"}),
        ({"colour": {"icontains": "RED"}}, {"apple", "cherry"}),
        ({"colour": {"contains": "r.d"}}, set()),
        ({"tags": "crisp"}, {"apple"}),
        ({"price": {"exists": True}}, {"apple", "lemon", "cherry"}),
        ({"price": {"exists": False}}, {"melon"}),
        ({'say "it"': True}, {"lemon"}),
        ({"AND": [{"price": {"lt": 20}}, {"colour": "red"}]}, {"apple"}),
        ({"OR": [{"colour": "red"}, {"price": "cheap"}]}, {"apple", "cherry"}),
        ({"NOT": [{"colour": "red"}, {"price": {"gt": 1}}]}, {"cherry", "melon"}),
        ({"price": {"lt": 20}, "NOT": [{"OR": [{"colour": "red"}]}]}, {"lemon"}),
    ):
        assert await found(engine, namespace, where) == names, where


async def test_a_search_by_agent_or_session_meets_them_too(engine: Engine, namespace: str) -> None:
    scope = MemoryScope("ann", "cook", "monday")
    await engine.memories.add(namespace, "The soup was good.", "fact", scope, {"stars": 4})
    for asked in (MemoryScope(agent_id="cook"), MemoryScope(session_id="monday")):
        for least, hits in ((4, 1), (5, 0)):
            chosen = Chosen(where={"stars": {"gte": least}})
            assert len(await engine.memories.search(namespace, "soup", asked, chosen)) == hits


@pytest.mark.parametrize(
    "where",
    [
        {"price": {"about": 5}},
        {"price": {"in": "abc"}},
        {"price": {"gt": [1]}},
        {"price": [1]},
        {"AND": {}},
        {"OR": []},
        {"NOT": [{}]},
        {"price": {"in": list(range(MAX_CONDITIONS + 1))}},
        {"a\x00": 1},
    ],
)
async def test_what_cannot_be_asked_is_refused_with_a_sentence(
    engine: Engine, namespace: str, where: dict[str, Any]
) -> None:
    with pytest.raises(Invalid, match="where"):
        await engine.memories.newest(namespace, ANN, chosen=Chosen(where=where))


async def test_deep_nesting_is_refused(engine: Engine, namespace: str) -> None:
    where: dict[str, Any] = {"a": 1}
    for _ in range(MAX_NESTING):
        where = {"AND": [where]}
    with pytest.raises(Invalid, match="nested too deeply"):
        await engine.memories.newest(namespace, ANN, chosen=Chosen(where=where))
