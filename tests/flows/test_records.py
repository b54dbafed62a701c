"""Records: JSON values under a path and a key, which come back as they were sent, expire and are recalled."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from recollect.engine import Engine
from recollect.errors import Forbidden, Invalid
from recollect.flows.keyed.operations import (
    MAX_LABELS,
    MAX_OPERATIONS,
    DeleteRecord,
    GetRecord,
    ListPaths,
    Operation,
    Pattern,
    PutRecord,
    SearchRecords,
)
from recollect.flows.keyed.records import Answer
from recollect.flows.kinds.target import Target
from recollect.memory.index.search import Scope
from recollect.memory.keyed_records import StoredRecord
from recollect.origin import acting
from recollect.settings import Settings
from recollect.storage.sql import Query
from tests.memory.test_passages import TABLES, counts, statistics
from tests.waiting import DEADLINE_SECONDS

USERS = ("users", "anna")
LET_PASS = [
    Query.named(
        f"test.pass_{table}",
        f"update {table} set expires_at = now() where namespace = :namespace and expires_at is not null",
    )
    for table in ("records", "record_expiries", "passages", "passage_words")
]
LEFT = Query.named(
    "test.left",
    "select (select count(*) from records where namespace = :namespace) as records, "
    "(select count(*) from record_expiries where namespace = :namespace) as expiries, "
    "(select count(*) from passages where namespace = :namespace) as passages",
)


@pytest.fixture
async def elsewhere(settings: Settings) -> AsyncIterator[Engine]:
    """A process whose own namespace is another, and that maintains nothing before it is told to."""
    other = settings.model_copy(update={"namespace": f"test-{uuid4()}", "indexer": False})
    engine = await Engine.open(other)
    yield engine
    await engine.close()


async def do(engine: Engine, namespace: str, *operations: Operation, user: str | None = None) -> list[Answer]:
    return (await engine.record_store.batch(namespace, operations, user)).answers


async def put(engine: Engine, namespace: str, key: str, value: Any, **more: Any) -> StoredRecord:
    [stored] = await do(engine, namespace, PutRecord(USERS, key, value, **more))
    assert isinstance(stored, StoredRecord)
    return stored


async def get(engine: Engine, namespace: str, key: str, *, refresh: bool = False) -> StoredRecord | None:
    [found] = await do(engine, namespace, GetRecord(USERS, key, refresh))
    assert found is None or isinstance(found, StoredRecord)
    return found


async def keys(engine: Engine, namespace: str, **search: Any) -> list[str]:
    [found] = await do(engine, namespace, SearchRecords(**search))
    assert isinstance(found, list)
    return [each.key for each in found if isinstance(each, StoredRecord)]


async def paths(engine: Engine, namespace: str, **listed: Any) -> list[tuple[str, ...]]:
    [found] = await do(engine, namespace, ListPaths(**listed))
    assert isinstance(found, list)
    return [tuple(path) for path in found if isinstance(path, list)]


async def recalled(engine: Engine, namespace: str, question: str, scope: Scope | None = None) -> list[str]:
    found = await engine.recall.recall(namespace, question, scope)
    return [memory.text for memory in found.memories]


async def let_pass(engine: Engine, namespace: str) -> None:
    """As if everything that expires had expired a moment ago."""
    async with engine.database.transaction(namespace) as tx:
        for statement in LET_PASS:
            await tx.all(statement)


async def swept(engine: Engine, namespace: str) -> None:
    """Maintenance has passed; the tests beside this one have theirs, which may be faster by a moment."""
    await let_pass(engine, namespace)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await left(engine, namespace))[1]:
            await engine.maintenance.remove_expired(engine.sweep_expired)


async def left(engine: Engine, namespace: str) -> Sequence[int]:
    async with engine.database.reading(namespace) as db:
        return tuple(await db.one(LEFT))


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [1.0, 1e22, -0.0, 2**70, None, True], "text": "naïve ☕ \\u0000 \u2028"},
        [],
        "a text",
        0.1,
        None,
        {"deep": {"er": [{"x": {}}]}},
    ],
)
async def test_a_value_comes_back_as_it_was_sent(engine: Engine, namespace: str, value: Any) -> None:
    await put(engine, namespace, "k", value)
    found = await get(engine, namespace, "k")
    assert found is not None
    assert json.dumps(found.value) == json.dumps(value)


async def test_a_second_value_takes_the_place_of_the_first(engine: Engine, namespace: str) -> None:
    first = await put(engine, namespace, "home", {"city": "Rome"})
    second = await put(engine, namespace, "home", {"city": "Oslo"})
    assert (second.id, second.created_at) == (first.id, first.created_at)
    assert second.updated_at > first.updated_at
    assert await recalled(engine, namespace, "Which city?") == ["city: Oslo"]


async def test_reads_see_what_was_there_before_the_writes_of_their_batch(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "a", {"n": 1})
    before, _, found, gone, _, listed = await do(
        engine,
        namespace,
        GetRecord(USERS, "a"),
        PutRecord(USERS, "a", {"n": 2}),
        SearchRecords(USERS),
        DeleteRecord(USERS, "b"),
        PutRecord(("other",), "c", {}),
        ListPaths(),
    )
    assert isinstance(before, StoredRecord)
    assert before.value == {"n": 1}
    assert isinstance(found, list)
    assert [each.value for each in found if isinstance(each, StoredRecord)] == [{"n": 1}]
    assert gone is False
    assert listed == [list(USERS)]


async def test_of_several_writes_to_one_record_the_last_counts(engine: Engine, namespace: str) -> None:
    both = await do(engine, namespace, PutRecord(USERS, "a", 1), PutRecord(USERS, "a", 2))
    assert [each.value for each in both if isinstance(each, StoredRecord)] == [2, 2]
    await do(engine, namespace, PutRecord(USERS, "a", 3), DeleteRecord(USERS, "a"))
    assert await get(engine, namespace, "a") is None


async def test_a_batch_with_a_fault_changes_nothing(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match="path is empty"):
        await do(engine, namespace, PutRecord(USERS, "a", 1), DeleteRecord((), "b"))
    assert await get(engine, namespace, "a") is None


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (PutRecord(USERS, "", 1), "key is empty"),
        (PutRecord(("a", ""), "k", 1), "label of path is empty"),
        (PutRecord(("x" * 2000,), "k", 1), "longer than 2,000 bytes"),
        (PutRecord(("x",) * (MAX_LABELS + 1), "k", 1), "more than 64 labels"),
        (PutRecord(USERS, "k", {"n": float("nan")}), "value is not JSON"),
        (PutRecord(USERS, "k", "\x00"), "NUL"),
        (PutRecord(USERS, "k", 1, vectors=[[]]), "vectors must be a list"),
        (PutRecord(USERS, "k", 1, vectors=[[float("inf")]]), "finite"),
        (PutRecord(USERS, "k", 1, ttl_minutes=0), "ttl_minutes must be"),
        (SearchRecords(filter={"n": {"$near": 1}}), "operator of filter field n"),
        (SearchRecords(limit=0), "limit must be"),
        (SearchRecords(offset=-1), "offset must be"),
        (ListPaths(max_depth=0), "max_depth must be"),
    ],
)
async def test_what_cannot_be_kept_or_asked_is_refused(
    engine: Engine, namespace: str, operation: Operation, fault: str
) -> None:
    with pytest.raises(Invalid, match=fault):
        await do(engine, namespace, operation)


async def test_the_longest_names_can_be_kept(engine: Engine, namespace: str) -> None:
    user = "語" * 250
    # Numbers that no compression shortens.
    labels = tuple(f"{number * 2654435761 % 2**32:08x}" * 2 for number in range(MAX_LABELS - 1))
    names = PutRecord(labels, "k" * (2000 - 750 - 16 * len(labels)), {"text": "zebras"})
    [stored] = await do(engine, namespace, names, user=user)
    assert isinstance(stored, StoredRecord)
    with pytest.raises(Invalid, match="longer than 2,000 bytes"):
        await do(engine, namespace, replace(names, key=names.key + "k"), user=user)


async def test_a_batch_has_a_limit(engine: Engine, namespace: str) -> None:
    with pytest.raises(Invalid, match="number of operations"):
        await do(engine, namespace, *[GetRecord(USERS, "a")] * (MAX_OPERATIONS + 1))


async def test_what_a_record_says_is_recalled_and_belongs_to_its_user(engine: Engine, namespace: str) -> None:
    value = {"favourite_drink": "green tea", "cups": 3}
    await do(engine, namespace, PutRecord(("prefs",), "drink", value), user="anna")
    found = await engine.recall.recall(namespace, "What does she like to drink?", Scope(owner="anna"))
    assert [(memory.kind, memory.text) for memory in found.memories] == [
        ("record", "favourite drink: green tea\ncups: 3")
    ]
    assert found.memories[0].metadata == {"path": ["prefs"], "key": "drink"}
    story = await engine.lineage.of(namespace, f"record:{found.memories[0].id}")
    assert (story.state, story.text, [event.event for event in story.events]) == (
        "in_force",
        found.memories[0].text,
        ["stored"],
    )
    (explained,) = (await engine.recall.recall(namespace, "green tea", explain=True)).memories
    assert explained.explanation is not None
    assert explained.explanation.cited_words == ("green", "tea")
    assert await recalled(engine, namespace, "green tea", Scope(owner="bob")) == []
    assert await do(engine, namespace, GetRecord(("prefs",), "drink")) == [None]


async def test_a_record_is_found_by_its_texts_only(engine: Engine, namespace: str) -> None:
    await put(engine, namespace, "a", {"text": "zebras", "note": "lions"}, texts=["Anna saw zebras."])
    await put(engine, namespace, "b", {"text": "zebras"}, texts=[])
    assert await recalled(engine, namespace, "zebras") == ["Anna saw zebras."]
    assert await recalled(engine, namespace, "lions") == ["Anna saw zebras."]
    [found] = await do(engine, namespace, SearchRecords(query="Which animals did she see?"))
    assert isinstance(found, list)
    scores = {each.key: each.score for each in found if isinstance(each, StoredRecord)}
    assert scores["a"]
    assert scores["b"] is None


async def test_a_search_stays_under_its_path(engine: Engine, namespace: str) -> None:
    for path in (("foo",), ("foo", "child"), ("foobar",), ("fo",), ("foo\x01",), ("foo_%",)):
        await do(engine, namespace, PutRecord(path, "/".join(path), {"v": 1}))
    assert sorted(await keys(engine, namespace, path=("foo",))) == ["foo", "foo/child"]
    assert await keys(engine, namespace, path=("foo", "child")) == ["foo/child"]
    assert await keys(engine, namespace, path=("f",)) == []
    assert len(await keys(engine, namespace)) == 6


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"n": 10}, "b"),
        ({"n": {"$ne": 10}}, "acd"),
        ({"n": {"$gt": 9}}, "b"),
        ({"n": {"$gte": 2, "$lt": 10}}, "a"),
        ({"n": {"$lte": 10}, "tag": "x"}, "a"),
        ({"tag": {"$gt": "w"}}, "ab"),
        ({"inner": {"x": [1]}}, "d"),
        ({"n": None}, ""),
        ({}, "abcd"),
    ],
)
async def test_filters_compare_numbers_as_numbers(
    engine: Engine, namespace: str, asked: dict[str, Any], expected: str
) -> None:
    values: dict[str, Any] = {
        "a": {"n": 2, "tag": "x"},
        "b": {"n": 10, "tag": "y"},
        "c": {"n": "10"},
        "d": {"inner": {"x": [1]}},
    }
    await do(engine, namespace, *[PutRecord(USERS, key, value) for key, value in values.items()])
    assert "".join(sorted(await keys(engine, namespace, filter=asked))) == expected


async def test_a_question_orders_and_pages_what_passes_the_filter(engine: Engine, namespace: str) -> None:
    values = {"a": "red apple", "b": "red car", "c": "green apple", "d": "blue car"}
    for key, text in values.items():
        await put(engine, namespace, key, {"text": text, "colour": text.split()[0]})
    assert (await keys(engine, namespace, query="an apple", filter={"colour": "red"})) == ["a", "b"]
    ordered = await keys(engine, namespace, query="vehicles: a blue car")
    assert ordered[:2] == ["d", "b"]
    assert [
        *(await keys(engine, namespace, query="vehicles: a blue car", limit=2)),
        *(await keys(engine, namespace, query="vehicles: a blue car", limit=2, offset=2)),
    ] == ordered


@pytest.mark.parametrize(("distance", "best"), [("cosine", "far"), ("inner_product", "far"), ("l2", "near")])
async def test_a_callers_vectors_are_compared_in_their_own_space(
    engine: Engine, namespace: str, distance: Any, best: str
) -> None:
    await put(engine, namespace, "far", {}, vectors=[[0.0, -1.0], [9.0, 0.0]])
    await put(engine, namespace, "near", {}, vectors=[[1.0, 0.5]])
    await put(engine, namespace, "other size", {}, vectors=[[1.0]])
    await put(engine, namespace, "zero", {}, vectors=[[0.0, 0.0]])
    [found] = await do(engine, namespace, SearchRecords(vector=[1.0, 0.0], distance=distance))
    assert isinstance(found, list)
    scores = {each.key: each.score for each in found if isinstance(each, StoredRecord)}
    assert next(iter(scores)) == best
    assert list(scores)[-1] == "other size"
    assert scores["other size"] is None
    assert scores["zero"] == {"cosine": 0.0, "inner_product": 0.0, "l2": -1.0}[distance]


async def test_paths_are_listed_by_how_they_begin_and_end(engine: Engine, namespace: str) -> None:
    made = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "c", "f"), ("b", "a", "f")]
    await do(engine, namespace, *[PutRecord(path, "k", 1) for path in made])
    assert await paths(engine, namespace) == made
    assert await paths(engine, namespace, patterns=(Pattern("prefix", ("a", "b")),), max_depth=3) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
    ]
    assert await paths(engine, namespace, patterns=(Pattern("suffix", ("f",)),)) == [("a", "c", "f"), ("b", "a", "f")]
    both = (Pattern("prefix", ("a", "*", "d")), Pattern("suffix", ("*", "i")))
    assert await paths(engine, namespace, patterns=both) == [("a", "b", "d", "i")]
    assert await paths(engine, namespace, patterns=(Pattern("suffix", ("*",) * 5),)) == []
    assert await paths(engine, namespace, limit=2, offset=1) == made[1:3]


async def test_an_expired_record_is_out_of_every_answer_at_once(elsewhere: Engine, namespace: str) -> None:
    await put(elsewhere, namespace, "k", {"text": "zebras"}, ttl_minutes=5)
    assert await recalled(elsewhere, namespace, "zebras") == ["text: zebras"]
    await let_pass(elsewhere, namespace)
    assert await get(elsewhere, namespace, "k", refresh=True) is None
    assert await keys(elsewhere, namespace) == []
    assert await paths(elsewhere, namespace) == []
    assert await recalled(elsewhere, namespace, "zebras") == []
    assert [entry.content for entry in (await elsewhere.feed.page(namespace)).entries] == [None]
    again = await put(elsewhere, namespace, "k", {"text": "lions"})
    assert not again.replaced
    assert await recalled(elsewhere, namespace, "zebras lions") == ["text: lions"]


async def test_what_has_expired_leaves_the_tables_searched_or_not(elsewhere: Engine, namespace: str) -> None:
    await put(elsewhere, namespace, "a", {"text": "zebras"}, ttl_minutes=5)
    await put(elsewhere, namespace, "b", {"text": "lions"}, texts=[], ttl_minutes=5)
    await put(elsewhere, namespace, "c", {"text": "tigers"}, ttl_minutes=5)
    await put(elsewhere, namespace, "c", {"text": "tigers"})
    assert await left(elsewhere, namespace) == (3, 2, 2)
    await swept(elsewhere, namespace)
    assert await left(elsewhere, namespace) == (1, 0, 1)
    told = [entry.change.event for entry in (await elsewhere.feed.page(namespace)).entries]
    assert told == ["add", "add", "add", "update", "delete", "delete"]


async def test_a_writer_may_replace_a_record_but_not_let_it_end_sooner(elsewhere: Engine, namespace: str) -> None:
    await put(elsewhere, namespace, "lasting", "zebras")
    await put(elsewhere, namespace, "ending", "zebras", ttl_minutes=5)
    with acting("rest", role="write"):
        for key, minutes in (("lasting", 1_000_000), ("ending", 4)):
            with pytest.raises(Forbidden, match="cannot make a stored record expire sooner"):
                await do(
                    elsewhere, namespace, PutRecord(USERS, "new", 1), PutRecord(USERS, key, 1, ttl_minutes=minutes)
                )
        for later in (5, 6, None):
            await put(elsewhere, namespace, "ending", "lions", ttl_minutes=later)
        await put(elsewhere, namespace, "short", "lions", ttl_minutes=0.001)
    assert await get(elsewhere, namespace, "new") is None
    kept = await get(elsewhere, namespace, "lasting")
    assert kept is not None
    assert (kept.value, kept.expires_at) == ("zebras", None)
    ended = await put(elsewhere, namespace, "lasting", "lions", ttl_minutes=5)
    assert ended.expires_at is not None
    # What is over is no longer anybody's to keep.
    await let_pass(elsewhere, namespace)
    with acting("rest", role="write"):
        await put(elsewhere, namespace, "lasting", "lions", ttl_minutes=1)


async def test_being_read_lets_a_record_live_on_if_that_is_wanted(elsewhere: Engine, namespace: str) -> None:
    stored = await put(elsewhere, namespace, "k", {"text": "zebras"}, ttl_minutes=5)

    async def until() -> Any:
        found = await get(elsewhere, namespace, "k")
        assert found is not None
        return found.expires_at

    assert await until() == stored.expires_at
    with acting("rest", "a reader", "read"):
        await get(elsewhere, namespace, "k", refresh=True)
    assert await until() == stored.expires_at
    await get(elsewhere, namespace, "k", refresh=True)
    by_get = await until()
    assert by_get > stored.expires_at
    await keys(elsewhere, namespace, query="zebras", refresh=False)
    assert await until() == by_get
    await keys(elsewhere, namespace, query="zebras")
    assert await until() > by_get
    await swept(elsewhere, namespace)
    assert await left(elsewhere, namespace) == (0, 0, 0)


async def test_writers_of_the_same_records_take_turns(engine: Engine, namespace: str) -> None:
    async def write(number: int) -> None:
        order = ["a", "b", "c"] if number % 2 else ["c", "b", "a"]
        operations: list[Operation] = [
            PutRecord(USERS, key, {"text": f"Writer {number} has {'apples' if number % 3 else 'pears'} and {key}."})
            for key in order[:2]
        ]
        await do(engine, namespace, *operations, DeleteRecord(USERS, order[2]))

    await asyncio.gather(*(write(number) for number in range(24)))
    await engine.indexer.flush(namespace)
    for key in await keys(engine, namespace):
        await do(engine, namespace, DeleteRecord(USERS, key))
    assert await counts(engine, namespace) == dict.fromkeys(TABLES, 0)
    assert await statistics(engine, namespace) == {}


async def test_a_value_is_exported_and_imported_as_it_was_sent(engine: Engine, namespace: str) -> None:
    value = {"b": 1.0, "a": [1e22, 2**70, 0.1, None], "text": "naïve ☕"}
    await put(engine, namespace, "k", value, texts=["A café."], vectors=[[0.1, -1e-05]], ttl_minutes=5)
    await put(engine, namespace, "unsearched", None, texts=[], ttl_minutes=5)
    lines = "\n".join([line async for line in engine.exporting.lines(namespace, None)])
    other = f"{namespace}-other"
    assert (await engine.importing.run(io.BytesIO(lines.encode()), other)).refusals == []
    found = await get(engine, other, "k")
    assert found is not None
    assert json.dumps(found.value) == json.dumps(value)
    assert await recalled(engine, other, "café") == ["A café."]
    assert await keys(engine, other, vector=[0.1, -1e-05], limit=1) == ["k"]
    await swept(engine, other)
    assert await left(engine, other) == (0, 0, 0)
    forged = lines.replace('"key":"k"', '"key":"other"')
    (refusal,) = (await engine.importing.run(io.BytesIO(forged.encode()), f"{namespace}-forged")).refusals
    assert "id does not follow" in str(refusal)


async def test_a_user_and_an_item_are_forgotten_with_all_that_was_derived(engine: Engine, namespace: str) -> None:
    await do(engine, namespace, PutRecord(("a",), "k", "zebras", ttl_minutes=5), user="anna")
    kept = await put(engine, namespace, "k", "lions", ttl_minutes=5)
    receipt = await engine.forget.forget(namespace, Target("user", "anna"))
    assert dict(receipt.rows) == {"records": 1, "passages": 1}
    assert await recalled(engine, namespace, "zebras lions") == ["lions"]
    await engine.forget.item(namespace, f"record:{kept.id}")
    assert await left(engine, namespace) == (0, 0, 0)
