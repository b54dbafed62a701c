"""Memory stores: files at paths, versions of all they ever were, writers who take turns, and recall of them."""

import asyncio
import io
import json
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from recollect.engine import Engine
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.kinds.target import USER, Target
from recollect.flows.stores import rules
from recollect.flows.stores.files import MAX_FILES, Edit, PathTaken, Stale
from recollect.memory.index.search import Scope
from recollect.memory.store_files import StoredFile, VersionFilter
from recollect.origin import acting
from tests.flows.talk import say

TABLES = ("memory_stores", "store_files", "store_versions")
FULL_STORE = """
insert into store_files (namespace, id, store_id, path, content, sha256, version_id, created_at, updated_at)
select $1, gen_random_uuid(), $2, '/' || i, '', '', gen_random_uuid(), now(), now() from generate_series(1, $3) i
"""


async def made(engine: Engine, namespace: str, **options: Any) -> str:
    return rules.shown(rules.STORE, (await engine.stores.create(namespace, "Notes", **options)).id)


def name(file: StoredFile) -> str:
    return rules.shown(rules.FILE, file.id)


async def recalled(engine: Engine, namespace: str, question: str, owner: str | None = None) -> list[tuple[str, Any]]:
    found = await engine.recall.recall(namespace, question, Scope(owner=owner, kinds=("file",)))
    places: list[Any] = [memory.metadata for memory in found.memories]
    return [(memory.text, place["path"]) for memory, place in zip(found.memories, places, strict=True)]


async def rows(engine: Engine, namespace: str) -> dict[str, list[str]]:
    async with engine.database.reading(namespace) as db:
        return {
            table: [
                row["row"]
                for row in await db._connection.fetch(
                    f"select t::text as row from {table} t where namespace = $1", namespace
                )
            ]
            for table in (*TABLES, "passages")
        }


async def history(engine: Engine, namespace: str, store: str) -> list[tuple[str, str | None, str | None]]:
    page = await engine.files.versions(namespace, store, VersionFilter(), None, 100, with_content=True)
    return [(version.operation, version.path, version.content) for version in reversed(page.items)]


async def test_a_file_is_recalled_by_its_content_and_by_its_path_and_among_everything_else(
    engine: Engine, namespace: str
) -> None:
    store = await made(engine, namespace)
    await say(engine, namespace, "ann", "The ferry to the island leaves at noon.")
    await engine.files.create(namespace, store, "/health/sleep.md", "The physician said: eight hours.")
    await engine.files.create(namespace, store, "/empty.md", "")
    assert (await recalled(engine, namespace, "What did the doctor advise?"))[0] == (
        "The physician said: eight hours.",
        "/health/sleep.md",
    )
    assert await recalled(engine, namespace, "sleep") == [("The physician said: eight hours.", "/health/sleep.md")]
    found = (await engine.recall.recall(namespace, "ferry or physician")).memories
    assert {memory.kind for memory in found} == {"message", "file"}


async def test_recall_follows_what_a_file_becomes_and_where_it_goes(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/a.md", "Anna flies in the morning.")
    await engine.files.change(namespace, store, name(file), Edit(content="Anna takes the train."))
    await engine.files.change(namespace, store, name(file), Edit(path="/travel/anna.md"))
    assert await recalled(engine, namespace, "How does Anna travel?") == [("Anna takes the train.", "/travel/anna.md")]
    await engine.files.change(namespace, store, name(file), Edit(content=" "))
    assert (await rows(engine, namespace))["passages"] == []
    await engine.files.change(namespace, store, name(file), Edit(content="Anna walks."))
    await engine.files.delete(namespace, store, name(file))
    assert (await rows(engine, namespace))["passages"] == []
    assert await history(engine, namespace, store) == [
        ("created", "/a.md", "Anna flies in the morning."),
        ("modified", "/a.md", "Anna takes the train."),
        ("modified", "/travel/anna.md", "Anna takes the train."),
        ("modified", "/travel/anna.md", " "),
        ("modified", "/travel/anna.md", "Anna walks."),
        ("deleted", "/travel/anna.md", None),
    ]


async def test_of_writers_who_saw_the_same_content_one_wins(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/plan.md", "The first plan.")
    edits = [Edit(content=f"The plan of writer {number}.", expected_sha256=file.sha256) for number in range(8)]
    outcomes = await asyncio.gather(
        *(engine.files.change(namespace, store, name(file), edit) for edit in edits), return_exceptions=True
    )
    assert Counter(type(outcome) for outcome in outcomes) == {StoredFile: 1, Stale: 7}
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, StoredFile)]
    assert (await engine.files.find(namespace, store, name(file))).content == winner.content
    assert [text for text, _ in await recalled(engine, namespace, "plan")] == [winner.content]
    assert len(await history(engine, namespace, store)) == 2
    with pytest.raises(Stale):
        await engine.files.delete(namespace, store, name(file), file.sha256)
    await engine.files.delete(namespace, store, name(file), winner.sha256)


async def test_writers_of_different_things_lose_nothing_of_each_other(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/a.md", "one")
    await asyncio.gather(
        *(engine.files.change(namespace, store, name(file), Edit(content=f"text {number}")) for number in range(4)),
        engine.files.change(namespace, store, name(file), Edit(path="/b.md")),
    )
    kept = await engine.files.find(namespace, store, name(file))
    assert kept.path == "/b.md"
    assert await recalled(engine, namespace, "text") == [(kept.content, "/b.md")]
    assert len(await history(engine, namespace, store)) == 6


async def test_no_two_files_are_at_one_path_nor_one_below_another(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    paths = ["/a", "/a", "/a/b", "/a/b/c", "/ab", "/a-b", "/a.b/c"]
    outcomes = await asyncio.gather(
        *(engine.files.create(namespace, store, path, "x") for path in paths), return_exceptions=True
    )
    there = {outcome.path for outcome in outcomes if isinstance(outcome, StoredFile)}
    assert {"/ab", "/a-b", "/a.b/c"} < there
    assert len(there) == 4
    assert sum(isinstance(outcome, PathTaken) for outcome in outcomes) == 3
    other = await engine.files.create(namespace, store, "/z", "x")
    with pytest.raises(PathTaken) as taken:
        await engine.files.change(namespace, store, name(other), Edit(path="/ab/c"))
    assert taken.value.path == "/ab"
    assert (await engine.files.change(namespace, store, name(other), Edit(path="/z/deeper"))).path == "/z/deeper"


async def test_what_is_so_already_gets_no_version_even_if_the_writer_saw_something_else(
    engine: Engine, namespace: str
) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/a.md", "one")
    same = await engine.files.change(namespace, store, name(file), Edit("/a.md", "one", expected_sha256="0" * 64))
    assert same == await engine.files.change(namespace, store, name(file), Edit()) == file
    assert len(await history(engine, namespace, store)) == 1


async def test_those_who_want_a_store_of_one_name_at_once_get_the_same(engine: Engine, namespace: str) -> None:
    async def wanted(user_id: str | None) -> str:
        owner = {} if user_id is None else {"user_id": user_id}
        return str((await engine.stores.create(namespace, "Notes", metadata=owner, if_absent=True)).id)

    for user_id in (None, "ann", "bob"):
        assert len(set(await asyncio.gather(*(wanted(user_id) for _ in range(6))))) == 1
    assert len((await rows(engine, namespace))["memory_stores"]) == 3
    mine = rules.shown(rules.STORE, UUID(await wanted("ann")))
    await engine.stores.change(namespace, mine, "Other notes")
    second = rules.shown(rules.STORE, UUID(await wanted("ann")))
    await engine.stores.archive(namespace, second)
    third = rules.shown(rules.STORE, UUID(await wanted("ann")))
    assert len({mine, second, third}) == 3


async def test_a_redacted_version_says_when_and_by_whom_but_not_what(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    with acting("rest", "ann"):
        file = await engine.files.create(namespace, store, "/zyxomlurk.md", "quvantrel")
    old = rules.shown(rules.VERSION, file.version_id)
    with pytest.raises(Conflict, match="update or delete the memory"):
        await engine.files.redact(namespace, store, old)
    await engine.files.change(namespace, store, name(file), Edit("/b.md", "nothing"))
    with acting("rest", "bob"):
        redacted = await engine.files.redact(namespace, store, old)
    assert (redacted.path, redacted.content, redacted.sha256, redacted.size) == (None, None, None, None)
    assert (redacted.author, redacted.redacted_by, redacted.operation) == ("ann", "bob", "created")
    assert await engine.files.redact(namespace, store, old) == redacted
    left = str(await rows(engine, namespace))
    assert "zyxomlurk" not in left
    assert "quvantrel" not in left
    assert file.sha256 not in left


async def test_an_archived_store_can_be_read_and_emptied_but_not_changed(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/a.md", "one")
    archived = await engine.stores.archive(namespace, store)
    assert archived.archived_at is not None
    assert await engine.stores.archive(namespace, store) == archived
    for attempt in (
        engine.files.create(namespace, store, "/b.md", "two"),
        engine.files.change(namespace, store, name(file), Edit(content="two")),
        engine.stores.change(namespace, store, "Other notes"),
    ):
        with pytest.raises(Invalid, match="is archived"):
            await attempt
    assert await recalled(engine, namespace, "one") == [("one", "/a.md")]
    await engine.files.delete(namespace, store, name(file))
    redacted = await engine.files.redact(namespace, store, rules.shown(rules.VERSION, file.version_id))
    assert redacted.redacted_at is not None


async def test_a_deleted_store_leaves_no_row(engine: Engine, namespace: str) -> None:
    store, kept = await made(engine, namespace), await made(engine, namespace)
    for number in range(3):
        await engine.files.create(namespace, store, f"/{number}.md", f"text {number}")
    deleted = await engine.files.create(namespace, store, "/deleted.md", "gone")
    await engine.files.delete(namespace, store, name(deleted))
    await engine.files.create(namespace, kept, "/0.md", "kept")
    await engine.stores.delete(namespace, store)
    assert {table: len(found) for table, found in (await rows(engine, namespace)).items()} == dict.fromkeys(
        (*TABLES, "passages"), 1
    )
    with pytest.raises(NotFound):
        await engine.files.find(namespace, store, name(deleted))


async def test_a_store_of_a_user_is_recalled_and_forgotten_with_the_user(engine: Engine, namespace: str) -> None:
    for user in ("ann", "bob"):
        store = await made(engine, namespace, metadata={"user_id": user})
        file = await engine.files.create(namespace, store, "/drink.md", f"{user} likes tea.")
    assert await recalled(engine, namespace, "tea", "ann") == [("ann likes tea.", "/drink.md")]
    for changed in ({"user_id": "ann"}, {"user_id": None}):
        with pytest.raises(Invalid, match="cannot be changed"):
            await engine.stores.change(namespace, store, metadata=changed)
    counted = await engine.forget.count(namespace, Target(USER, "ann"))
    assert counted.rows == {"memory_stores": 1, "passages": 1, "store_files": 1, "store_versions": 1}
    assert (await engine.forget.forget(namespace, Target(USER, "ann"))).rows == counted.rows
    assert await recalled(engine, namespace, "tea") == [("bob likes tea.", "/drink.md")]
    story = await engine.lineage.of(namespace, f"file:{file.id}")
    assert (story.text, [event.event for event in story.events]) == ("bob likes tea.", ["stored"])


async def test_a_deleted_file_can_still_be_forgotten_with_its_versions(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/a.md", "one")
    await engine.files.change(namespace, store, name(file), Edit(content="two"))
    await engine.files.delete(namespace, store, name(file))
    await engine.files.redact(namespace, store, rules.shown(rules.VERSION, file.version_id))
    story = await engine.lineage.of(namespace, f"file:{file.id}")
    assert (story.state, [event.event for event in story.events]) == ("deleted", ["stored", "changed", "deleted"])
    assert (await engine.forget.item(namespace, f"file:{file.id}")).rows == {"store_versions": 3}
    assert await history(engine, namespace, store) == []
    with pytest.raises(NotFound):
        await engine.forget.item(namespace, f"file:{file.id}")


@pytest.mark.parametrize(
    ("kind", "tampered", "why"),
    [
        ("store_file", {"content": "two"}, "sha256 is not that of the content"),
        ("store_file", {"path": "/a/../b.md"}, "empty, . or .."),
        ("store_file", {"store_id": str(UUID(int=1))}, "conflicts"),
        ("store_version", {"redacted_at": "2026-01-01T00:00:00+00:00"}, "must have none"),
        ("store_version", {"operation": "renamed"}, "operation must be one of"),
        ("memory_store", {"name": ""}, "between 1 and 255"),
    ],
)
async def test_an_import_refuses_what_no_writer_could_have_made(
    engine: Engine, namespace: str, kind: str, tampered: dict[str, str], why: str
) -> None:
    await engine.files.create(namespace, await made(engine, namespace), "/a.md", "one")
    records = [json.loads(line) async for line in engine.exporting.lines(namespace)]
    lines = [json.dumps(record | tampered if record["kind"] == kind else record) for record in records]
    report = await engine.importing.run(io.BytesIO("\n".join(lines).encode()), f"{namespace}-other")
    assert why in report.refusals[0].reason
    assert report.added[kind] == 0
    assert "two" not in str(await rows(engine, f"{namespace}-other"))


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_full_store_takes_no_more(engine: Engine, namespace: str) -> None:
    if engine.database.distributed:
        pytest.skip("its rows come from a statement that Citus refuses")
    store = await engine.stores.create(namespace, "Notes")
    async with engine.database.transaction(namespace) as tx:
        await tx._connection.execute(FULL_STORE, namespace, store.id, MAX_FILES)
    with pytest.raises(Invalid, match="2,000 memories"):
        await engine.files.create(namespace, rules.shown(rules.STORE, store.id), "/more.md", "x")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "start with /"),
        ("notes.md", "start with /"),
        ("/", "empty"),
        ("/a//b", "empty"),
        ("/a/", "empty"),
        ("/a/../b", "empty, . or .."),
        ("/a/./b", "empty, . or .."),
        ("/a\nb", "control"),
        ("/a\u200bb", "control or format"),
        ("/a\u2028b", "control or format"),
        ("/e\u0301", "Normalization Form C"),
        ("/a\x00", "NUL"),
        ("/" + "é" * 512, "1,024 bytes"),
        ("/x" * 21, "20 segments"),
    ],
)
async def test_a_path_that_could_be_mistaken_is_refused(path: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        rules.path(path)


async def test_the_longest_path_and_content_are_taken_and_not_one_byte_more(engine: Engine, namespace: str) -> None:
    store = await made(engine, namespace)
    file = await engine.files.create(namespace, store, "/" + "x" * 1023, "ä" * 51_200)
    assert file.size == rules.MAX_CONTENT_BYTES
    with pytest.raises(Invalid, match="102,400 bytes"):
        await engine.files.create(namespace, store, "/b", "x" * 102_401)


@pytest.mark.parametrize(
    "options",
    [
        {"description": "x" * 1025},
        {"metadata": {str(number): "x" for number in range(17)}},
        {"metadata": {"": "x"}},
        {"metadata": {"x" * 65: "x"}},
        {"metadata": {"a": "x" * 513}},
        {"metadata": {"a": 1}},
        {"metadata": {"user_id": ""}},
    ],
    ids=str,
)
async def test_a_store_that_no_door_could_show_is_refused(engine: Engine, namespace: str, options: Any) -> None:
    with pytest.raises(Invalid):
        await made(engine, namespace, **options)
    assert (await rows(engine, namespace))["memory_stores"] == []
