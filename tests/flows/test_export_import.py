"""Export and import: the same state gives the same bytes, and comes back whole, wherever and however often."""

import io
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Invalid
from recollect.flows.gateway import Owner, Said
from recollect.flows.kinds.registry import KINDS
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.flows.stores import rules
from recollect.flows.stores.files import Edit
from recollect.flows.transfer.import_report import Report
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.records import LEFT_OUT
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from recollect.tasks import in_thread
from tests.commands import MODULE
from tests.flows.talk import say, say_all
from tests.storage.databases import connect, empty_database, url
from tests.storage.test_isolation import fill

KILLS = 5


@pytest.fixture
def pooling(request: pytest.FixtureRequest) -> str:
    """How connections are pooled matters to few of these tests."""
    return str(getattr(request, "param", "session"))


@pytest.fixture
async def elsewhere(server: Lease, settings: Settings) -> AsyncIterator[Engine]:
    """An engine on a database that has nothing in it, and writes values in its own way."""
    async with empty_database(server) as name:
        connection = await connect(server.connection, name)
        for setting in ("timezone = 'Asia/Kathmandu'", "bytea_output = 'escape'", "extra_float_digits = 0"):
            await connection.execute(f"alter database {name} set {setting}")
        await connection.close()
        place = SecretStr(url(server.connection, name))
        engine = await Engine.open(settings.model_copy(update={"database_url": place}))
        yield engine
        await engine.close()


async def exported(engine: Engine, namespace: str, user: str | None = None) -> list[str]:
    return [line async for line in engine.exporting.lines(namespace, user)]


async def imported(engine: Engine, lines: list[str], namespace: str | None = None) -> Report:
    return await engine.importing.run(io.BytesIO("\n".join(lines).encode()), namespace)


def kinds(lines: list[str]) -> Counter[str]:
    return Counter(json.loads(line)["kind"] for line in lines[1:-1])


def of_kind(lines: list[str], kind: str) -> list[dict[str, Any]]:
    return [fields for line in lines if (fields := json.loads(line))["kind"] == kind]


async def fill_richly(engine: Engine, namespace: str) -> None:
    """Something of every kind, with every field in use somewhere."""
    await fill(engine, namespace)
    async with engine.database.transaction(namespace) as tx:
        # These two were stored without what finds them, as no door does.
        await tx._connection.execute("delete from insights where namespace = $1 and source_ids = '{1}'", namespace)
        await tx._connection.execute("delete from episodes where namespace = $1", namespace)
    await say_all(engine, namespace, "ann", *(f"On day {n} we sailed to Naxos." for n in range(230)), session="log")
    line = NewMessage(
        "user", "Grüße: 日本語 and \u2028 a line of its own", '{"n": 1.50, "big": 123456789012345678901}', "Zoë"
    )
    await engine.remember.turn(namespace, Turn("Über", (line,), owner_if_new="ann"))
    vector = json.dumps([0.1, -1e-05, 3.0] + [0.0] * 1533)
    ferry = await engine.remember.document(
        namespace, "The ferry leaves at seven. " * 200, vector, '{"source": "timetable"}'
    )
    memory = await engine.memories.add(
        namespace, "Ann likes tea", "preference", MemoryScope("ann", "agent"), {"a": [1]}
    )
    await engine.memories.update(namespace, str(memory.memory.id), Change("Ann likes coffee"))
    await engine.memories.add(namespace, "Ann lives in Rome", "fact", MemoryScope("ann"), options=Options(key="home"))
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    paris = Options(key="home", pinned=True, valid_from=begin, sources=[f"document:{ferry}"])
    await engine.memories.add(namespace, "Ann lives in Paris", "fact", MemoryScope("ann"), options=paris)
    gone = await engine.memories.add(namespace, "Ann is asleep", "fact", MemoryScope("ann"))
    await engine.memories.delete(namespace, str(gone.memory.id))
    owner = Owner(namespace, "ann", "app", "project")
    await engine.gateway.put_resource(owner, "file:///a", "How to reef a sail", "Sailing", {"pages": 3})
    await engine.gateway.add(owner, "chat:1", [Said("ann", "user", 1_700_000_000_000, "The anchor is stuck")])
    await fill_a_store(engine, namespace, "ann")
    await engine.cognition.store_episode(namespace, "how to anchor", -0.25, "look at the chart")
    await engine.graph.add_node(namespace, "Person", "Ann", {"born": 1990})
    await engine.graph.add_node(namespace, "Person", "Ann", {"born": 1991})


async def fill_a_store(engine: Engine, namespace: str, user_id: str) -> None:
    """A store with a file that has changed, one that is empty, and one that is deleted and redacted."""
    made = await engine.stores.create(namespace, "Logbook", f"of {user_id}", {"user_id": user_id})
    store = rules.shown(rules.STORE, made.id)
    for path, content in (("/log/märz.md", f"{user_id} sailed"), ("/empty", ""), ("/gone", f"{user_id} sank")):
        file = await engine.files.create(namespace, store, path, content)
        if content:
            changed = Edit(content=f"{content} to Naxos")
            await engine.files.change(namespace, store, rules.shown(rules.FILE, file.id), changed)
    await engine.files.delete(namespace, store, rules.shown(rules.FILE, file.id))
    await engine.files.redact(namespace, store, rules.shown(rules.VERSION, file.version_id))


async def passages(engine: Engine, namespace: str) -> list[tuple[Any, ...]]:
    async with engine.database.reading(namespace) as db:
        rows = await db._connection.fetch(
            """
            select p.kind, p.item_id, p.part, p.owner, p.agent_id, p.session_id, p.position, p.role, p.speaker,
                   p.category, p.metadata, p.at, p.text, p.realm, w.kind, w.weights::text, cardinality(w.keys)
            from passages p join passage_words w on w.namespace = p.namespace and w.id = p.id
            where p.namespace = $1 order by p.kind, p.item_id, p.part
            """,
            namespace,
        )
    return [tuple(row) for row in rows]


async def test_every_table_is_exported_or_left_out_for_a_reason(engine: Engine) -> None:
    async with engine.database.unscoped() as connection:
        rows = await connection.fetch(
            "select relname from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace"
            " and relname !~ '_[0-9]{6}$'"  # a shard of Citus
        )
    exported_tables = [kind.record.table for kind in KINDS]
    assert sorted([*exported_tables, *LEFT_OUT]) == sorted(row["relname"] for row in rows)
    assert all(LEFT_OUT.values())


async def test_ids_above_those_that_are_counted_do_not_move_the_counter_of_all(
    engine: Engine, elsewhere: Engine, namespace: str
) -> None:
    await engine.cognition.store_episode(namespace, "greet", 1.0, "wave")
    lines = [
        json.dumps(record | {"id": 2**53 - 1}) if (record := json.loads(line)).get("kind") == "episode" else line
        for line in await exported(engine, namespace)
    ]
    assert (await imported(elsewhere, lines)).refusals == []
    assert (await elsewhere.cognition.store_episode(namespace, "leave", 1.0, "bow")).episode.id < 2**40


@pytest.mark.parametrize("pooling", ["session", "transaction"], indirect=True)
async def test_what_is_exported_comes_back_the_same_in_another_database(
    engine: Engine, elsewhere: Engine, namespace: str
) -> None:
    await fill_richly(engine, namespace)
    lines = await exported(engine, namespace)
    assert kinds(lines).keys() == {kind.name for kind in KINDS}
    assert await exported(engine, namespace) == lines

    report = await imported(elsewhere, lines)
    assert (report.namespace, report.refusals) == (namespace, [])
    assert report.added == kinds(lines)
    assert await exported(elsewhere, namespace) == lines
    assert await passages(elsewhere, namespace) == await passages(engine, namespace)

    found = await elsewhere.recall.recall(namespace, "When does the ferry leave?", top_k=1)
    assert found.memories[0].kind == "document"
    await elsewhere.indexer.flush(namespace)
    assert (await elsewhere.recall.recall(namespace, "vessel departure time", top_k=3)).by_meaning

    again = await imported(elsewhere, lines)
    assert (again.added.total(), again.known, again.refusals) == (0, kinds(lines), [])
    assert await exported(elsewhere, namespace) == lines


async def test_an_import_into_another_namespace_leaves_both_with_the_same_records(
    engine: Engine, namespace: str
) -> None:
    other = f"test-{uuid4()}"
    await fill_richly(engine, namespace)
    lines = await exported(engine, namespace)
    assert (await imported(engine, lines, other)).refusals == []
    assert (await exported(engine, other))[1:] == lines[1:]
    assert (await exported(engine, namespace)) == lines


async def test_the_past_of_a_graph_and_of_working_memory_comes_along(
    engine: Engine, elsewhere: Engine, namespace: str
) -> None:
    for weight in (0.1, 0.2):
        await engine.graph.add_edge(namespace, "Ann", "Naxos", "KNOWS", weight=weight)
        then = datetime.now(UTC)
    item = (await engine.cognition.update_working(namespace, "the anchor")).added_id
    held = datetime.now(UTC)
    await engine.graph.add_edge(namespace, "Ann", "Naxos", "KNOWS", weight=0.3, target_label="Island")
    await engine.cognition.archive(namespace, item)
    lines = await exported(engine, namespace)
    assert (await imported(elsewhere, lines)).refusals == []
    (neighbor,) = (await elsewhere.graph.neighbors(namespace, "Ann", as_of=then)).neighbors
    assert (neighbor.weight, neighbor.label) == (0.2, "Entity")
    assert [each.id for each in await elsewhere.cognition.working(namespace, held)] == [item]
    # It goes on from there.
    await elsewhere.graph.add_edge(namespace, "Ann", "Naxos", "KNOWS", weight=0.4)
    assert (await elsewhere.graph.neighbors(namespace, "Ann", as_of=then)).neighbors == [neighbor]


async def test_an_archive_of_an_earlier_version_has_no_past_in_working_memory(
    engine: Engine, elsewhere: Engine, namespace: str
) -> None:
    item = (await engine.cognition.update_working(namespace, "the anchor")).added_id
    held = datetime.now(UTC)
    await engine.cognition.archive(namespace, item)
    since = {"item_id", "created_at", "last_accessed"}
    lines = [
        json.dumps({name: value for name, value in fields.items() if name not in since})
        if (fields := json.loads(line))["kind"] == "stale_item"
        else line
        for line in await exported(engine, namespace)
    ]
    assert (await imported(elsewhere, lines)).refusals == []
    assert [each.original_content for each in await elsewhere.cognition.stale(namespace)] == ["the anchor"]
    assert await elsewhere.cognition.working(namespace, held) == []


async def test_new_ids_go_on_behind_those_that_were_imported(engine: Engine, elsewhere: Engine, namespace: str) -> None:
    await fill_richly(engine, namespace)
    lines = await exported(engine, namespace)
    await imported(elsewhere, lines)
    highest = {kind: max(record["id"] for record in of_kind(lines, kind)) for kind in ("insight", "episode")}
    said = await elsewhere.cognition.store_dialogue(namespace, "new", "user", "Hello")
    if not engine.database.distributed:  # Citus counts on each worker, in a range of its own
        assert said.seq > max(record["seq"] for record in of_kind(lines, "message"))
    assert (await elsewhere.cognition.compress(namespace, "A greeting", [said.seq])).insight.id > highest["insight"]
    episode = await elsewhere.cognition.store_episode(namespace, "greet", 1.0, "wave")
    assert episode.episode.id > highest["episode"]


async def test_a_conversation_goes_on_where_it_was(engine: Engine, elsewhere: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "one", "two")
    await imported(elsewhere, await exported(engine, namespace))
    await say(elsewhere, namespace, "ann", "three")
    async with elsewhere.database.reading(namespace) as db:
        said = await elsewhere.capabilities.log.recent(db, "talk", 10)
    assert [(message.position, message.content) for message in said] == [(0, "one"), (1, "two"), (2, "three")]


async def test_an_import_killed_at_random_points_ends_as_if_it_never_was(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    chance, other = random.Random(8), f"test-{uuid4()}"
    await fill_richly(engine, namespace)
    lines = await exported(engine, namespace)
    file = tmp_path / "export.jsonl"
    file.write_text("\n".join(lines) + "\n")
    child = [*MODULE, "tests.durability.importer", str(file), other]
    seen = [0]
    for _ in range(KILLS):
        with subprocess.Popen(child, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                assert process.stdout.readline() == "batch\n"
            process.kill()
            process.communicate()
        before = None
        # The server may still commit what the killed process had sent: both are read when nothing was added meanwhile.
        while (found := {row[1] for row in await passages(engine, other) if row[0] == "message"}) != before:
            before, partly = found, await exported(engine, other)
        assert set(partly[1:-1]) <= set(lines)
        assert found == {record["id"] for record in of_kind(partly, "message")}
        seen.append(len(partly))
    assert seen == sorted(seen)
    assert len(lines) > seen[-1] > seen[0]
    done = await in_thread(subprocess.run, child, capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.stdout.endswith("done 0\n"), done.stderr
    assert (await exported(engine, other))[1:] == lines[1:]
    assert await passages(engine, other) == await passages(engine, namespace)


async def test_an_export_shows_one_moment(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", *(f"before {n}" for n in range(250)))
    lines = engine.exporting.lines(namespace)
    seen = [await anext(lines) for _ in range(3)]
    await say(engine, namespace, "ann", "meanwhile")
    await engine.remember.document(namespace, "meanwhile too", None, None)
    seen += [line async for line in lines]
    assert kinds(seen) == {"session": 1, "message": 250}
    assert not any("meanwhile" in line for line in seen)


async def test_an_export_of_a_user_has_what_is_the_users_and_nothing_else(engine: Engine, namespace: str) -> None:
    ids = {}
    for user in ("ann", "bob"):
        said = await engine.remember.turn(
            namespace, Turn(f"of {user}", (NewMessage("user", f"{user} speaks"),), owner_if_new=user)
        )
        ids[user] = said[0].seq
        await engine.memories.add(namespace, f"{user} likes tea", "fact", MemoryScope(user))
        gone = await engine.memories.add(namespace, f"{user} is asleep", "fact", MemoryScope(user))
        await engine.memories.delete(namespace, str(gone.memory.id))
        await engine.gateway.put_resource(Owner(namespace, user), "file:///a", f"a file of {user}")
        await fill_a_store(engine, namespace, user)
        await engine.cognition.compress(namespace, f"{user} spoke", [said[0].seq])
    await engine.cognition.compress(namespace, "ann and bob spoke", list(ids.values()))
    await engine.remember.document(namespace, "of nobody", None, None)
    lines = await exported(engine, namespace, "ann")
    assert json.loads(lines[0])["user"] == "ann"
    assert not any("bob" in line for line in lines)
    assert kinds(lines) == {
        "session": 1, "message": 1, "memory": 1, "memory_history": 3, "insight": 1, "resource": 1,
        "memory_store": 1, "store_file": 2, "store_version": 6,
    }  # fmt: skip
    other = f"test-{uuid4()}"
    assert (await imported(engine, lines, other)).refusals == []
    assert (await exported(engine, other, "ann"))[1:] == lines[1:]


async def test_an_id_that_is_taken_is_refused_and_what_is_there_stays(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    await engine.cognition.store_episode(namespace, "how to sail", 1.0, "mind the wind")
    await engine.graph.add_node(namespace, "Person", "Ann")
    lines = await exported(engine, namespace)
    (episode,) = of_kind(lines, "episode")
    taken = episode | {"reflection": "something else entirely"}
    (node,) = of_kind(lines, "graph_node")
    header, end = lines[0], lines[-1]
    await imported(engine, [header, json.dumps(taken), json.dumps(node | {"id": node["id"] + 1}), end], other)

    report = await imported(engine, lines, other)
    assert [refusal.place for refusal in report.refusals] == ["line 2", "line 3"]
    assert f"episode {episode['id']} already exists with different content" in report.refusals[0].reason
    assert f"graph_node {node['id']} conflicts with a record" in report.refusals[1].reason
    assert of_kind(await exported(engine, other), "episode")[0]["reflection"] == "something else entirely"


async def test_what_refers_to_something_refused_is_refused_too(engine: Engine, namespace: str) -> None:
    """Its id is that of something else here: nothing may be tied to that."""
    other = f"test-{uuid4()}"
    await say_all(engine, namespace, "ann", "a secret of ann", "and another")
    await engine.graph.add_edge(namespace, "Ann", "Naxos", "LIVES_ON")
    lines = await exported(engine, namespace)
    await say(engine, other, "bob", "hello from bob")
    (ann,) = [node for node in of_kind(lines, "graph_node") if node["name"] == "Ann"]
    await imported(engine, [lines[0], json.dumps(ann | {"name": "Zoe"}), lines[-1]], other)
    before = await exported(engine, other)

    report = await imported(engine, lines, other)
    assert report.added == {"graph_node": 1}
    reasons = [refusal.reason for refusal in report.refusals]
    assert [reason for reason in reasons if "which was rejected" in reason] == [
        "session_id refers to the session talk, which was rejected",
        "session_id refers to the session talk, which was rejected",
        f"source refers to the graph_node {ann['id']}, which was rejected",
    ]
    after = await exported(engine, other)
    assert set(before[1:-1]) < set(after)
    assert not any("ann" in line for line in after)
    assert len(after) == len(before) + 1


async def test_an_import_goes_on_after_what_it_brought_has_changed(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    await say_all(engine, namespace, "ann", "one", "two")
    await engine.graph.add_edge(namespace, "Ann", "Naxos", "LIVES_ON")
    lines = await exported(engine, namespace)
    held_back = {"message", "graph_edge"}
    await imported(engine, [line for line in lines if json.loads(line)["kind"] not in held_back], other)
    await say(engine, other, "ann", "three")
    await engine.graph.add_node(other, "Person", "Ann", {"age": 36})
    report = await imported(engine, lines, other)
    assert (report.refusals, report.added) == ([], {"message": 2, "graph_edge": 1})
    async with engine.database.reading(other) as db:
        said = await engine.capabilities.log.recent(db, "talk", 10)
    assert [message.content for message in said] == ["one", "two", "three"]


async def test_working_memory_stays_within_its_bounds(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    for number in range(10):
        await engine.cognition.update_working(namespace, f"ours {number}")
        await engine.cognition.update_working(other, f"theirs {number}") if number < 7 else None
    report = await imported(engine, await exported(engine, namespace), other)
    assert (report.added, report.refused) == ({"working_item": 3}, 7)
    assert "Working memory already has 10 items" in report.refusals[0].reason
    assert len(await engine.cognition.working(other)) == 10


BAD_LINES = {
    "half a line": ('{"kind": "documen', "not JSON"),
    "not an object": ("[1, 2]", "not a JSON object"),
    "no kind": ("{}", "unknown kind None"),
    "an unknown kind": ('{"kind": "dream"}', "unknown kind 'dream'"),
    "a field too few": ('{"kind": "working_item", "id": 1}', "has no content, created_at"),
    "a field too many": (
        '{"kind": "golden_query_baseline", "query_id": 1, "expected_ids": [], "hits": 1, "set_on": "2024-01-01", '
        '"x": 1}',
        "has no field x",
    ),
    "a wrong type": (
        '{"kind": "episode", "id": 1, "query": 5, "reward": 1, "reflection": "", "created_at": "2024-01-01T00:00:00Z"}',
        "query must be text",
    ),
    "a huge id": (
        '{"kind": "episode", "id": 9007199254740992, "query": "q", "reward": 1, "reflection": "r", '
        '"created_at": "2024-01-01T00:00:00Z"}',
        "id must be between 1 and",
    ),
    "a null where none may be": (
        '{"kind": "episode", "id": null, "query": "", "reward": 1, "reflection": "", "created_at": "2024-01-01T00Z"}',
        "id must not be null",
    ),
    "a NUL character": (
        '{"kind": "episode", "id": 7, "query": "\\u0000", "reward": 1, "reflection": "r", '
        '"created_at": "2024-01-01T00:00:00Z"}',
        "query contains a NUL character",
    ),
    "a reference to nothing": (
        '{"kind": "judge_score", "judgement_id": 4, "document_id": 5, "judge1_score": 0, "judge1_reason": "", '
        '"judge2_score": 0, "judge2_reason": ""}',
        "A record in judge_scores refers to a record that does not exist",
    ),
}


async def test_a_line_that_cannot_be_taken_is_refused_alone(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    await engine.remember.document(namespace, "one", None, None)
    await engine.remember.document(namespace, "two", None, None)
    lines = await exported(engine, namespace)
    report = await imported(engine, [*lines[:2], *(line for line, _ in BAD_LINES.values()), *lines[2:]], other)
    reasons = {refusal.place: refusal.reason for refusal in report.refusals}
    assert len(report.refusals) == len(BAD_LINES)
    for number, (name, (_, reason)) in enumerate(BAD_LINES.items(), 3):
        if engine.database.distributed:  # a worker does not say which table it was
            reason = reason.replace("judge_scores", "this table")
        assert reason in reasons[f"line {number}"], name
    assert report.added == {"document": 2}
    assert (await exported(engine, other))[1:] == lines[1:]


NO_DOOR_WOULD: tuple[tuple[str, str, Any, str], ...] = (
    ("session", "id", "s" * 256, "id is longer than 255 characters"),
    ("session", "id", "chat:1@0123456789abcdef", "id belongs to a gateway chat of a different user"),
    ("session", "user_id", "", "user_id is empty"),
    ("session", "metadata", [1], "metadata must be a JSON object"),
    ("session", "next_position", -1, "next_position must be between 0 and"),
    ("session", "next_position", 2**50, "next_position must be between 0 and"),
    ("session", "window_start", -1, "window_start must be between 0 and"),
    ("session", "window_start", 5, "window_start must not be above next_position"),
    ("session", "window_strategy", "newest", "window_strategy must be one of sliding_window, token_threshold"),
    ("session", "window_max_messages", 0, "window_max_messages must be a whole number greater than 0"),
    ("session", "window_max_tokens", 2**31, "window_max_tokens must be a whole number of 32 bits"),
    ("session", "created_at", "0001-01-01T00:00:00+14:00", "created_at must be a time"),
    ("message", "position", -1, "position must be between 0 and"),
    ("message", "position", 1, "position must be below 1, the next_position of its session"),
    ("message", "content", " ", "content is empty"),
    ("message", "role", "", "role is empty"),
    ("message", "metadata", {"a": "\x00"}, "metadata contains a NUL character"),
    ("message", "metadata", json.loads("[" * 200 + "]" * 200), "metadata is nested more than 100 levels deep"),
    ("document", "embedding", [1e39] * 1536, "embedding must contain finite numbers that fit into 32 bits"),
    ("document", "embedding", [10**400] * 1536, "embedding must be a list of numbers"),
    ("document", "metadata", "x", "metadata must be a JSON object"),
    ("memory", "category", "dream", "category must be one of semantic, episodic, fact, preference"),
    ("memory", "metadata", [], "metadata must be a JSON object"),
    ("memory", "user_id", None, "needs one of them"),
    ("memory", "session_id", "s" * 256, "session_id is longer than 255 characters"),
    ("memory_history", "event", "dream", "event must be one of create, update"),
    ("memory_history", "number", 0, "number must be between 1 and"),
    ("episode", "reward", 1.5, "reward must be a number between -1.0 and 1.0"),
    ("graph_node", "name", "n" * 256, "name is longer than 255 characters"),
    ("graph_node", "properties", [], "properties must be a JSON object"),
    ("working_item", "importance", 7, "importance must be a number between 0.0 and 1.0"),
)


async def test_what_no_door_would_store_is_refused_with_its_line_and_field(engine: Engine, namespace: str) -> None:
    await engine.remember.turn(namespace, Turn("talk", (NewMessage("user", "hello"),), owner_if_new="ann"))
    await engine.remember.document(namespace, "one", None, None)
    await engine.memories.add(namespace, "Ann likes tea", "preference", MemoryScope("ann"))
    await engine.cognition.store_episode(namespace, "how to anchor", -0.25, "look at the chart")
    await engine.cognition.update_working(namespace, "the anchor")
    await engine.graph.add_node(namespace, "Person", "Ann")
    lines = await exported(engine, namespace)
    places = {json.loads(line)["kind"]: number for number, line in enumerate(lines)}
    for kind, field, value, reason in NO_DOOR_WOULD:
        bad = lines.copy()
        bad[places[kind]] = json.dumps({**json.loads(lines[places[kind]]), field: value})
        report = await imported(engine, bad, f"test-{uuid4()}")
        told = {refusal.place: refusal.reason for refusal in report.refusals}
        assert reason in told[f"line {places[kind] + 1}"], (kind, field)
        assert report.added[kind] == 0


async def test_a_file_without_its_end_is_reported(engine: Engine, namespace: str) -> None:
    await say(engine, namespace, "ann", "hello")
    report = await imported(engine, (await exported(engine, namespace))[:-1], f"test-{uuid4()}")
    assert report.added == {"session": 1, "message": 1}
    assert [refusal.reason for refusal in report.refusals] == ["the last line is missing: the file was cut off"]


@pytest.mark.parametrize(
    "first", ["", '{"type": "entity"}', '{"kind": "recollect-export", "version": 2, "namespace": "x", "user": null}']
)
async def test_a_file_that_is_no_export_of_this_version_is_refused_whole(engine: Engine, first: str) -> None:
    with pytest.raises(Invalid):
        await imported(engine, [first])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc\n\"é"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(texts=st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text("ab\n"), JSON, max_size=3)), max_size=5))
async def test_whatever_was_stored_comes_back(engine: Engine, texts: list[tuple[str, dict[str, Any]]]) -> None:
    first, second = f"test-{uuid4()}", f"test-{uuid4()}"
    for text, metadata in texts:
        if text.strip() and "\x00" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text):
            await engine.remember.document(first, text, None, json.dumps(metadata))
    lines = await exported(engine, first)
    assert (await imported(engine, lines, second)).refusals == []
    assert (await exported(engine, second))[1:] == lines[1:]


async def test_speakers_times_and_places_come_back(engine: Engine, elsewhere: Engine, namespace: str) -> None:
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    message = NewMessage("user", "I run.", speaker="Dana", at=at, id=uuid4())
    await engine.remember.turn(namespace, Turn("talk", (message,), owner_if_new="ann"))
    scope = MemoryScope("ann", session_id="talk")
    for text in ("Dana runs.", "Dana is happy."):
        await engine.memories.add(namespace, text, "fact", scope, at=at)
    lines = await exported(engine, namespace)
    report = await imported(elsewhere, lines)
    assert not report.refused
    assert await exported(elsewhere, namespace) == lines
    found = await elsewhere.recall.recall(namespace, "Who is happy and runs?", Scope(owner="ann"), explain=True)
    assert {(each.at, each.speaker) for each in found.memories} == {(at, "Dana"), (at, None)}
    memories = [each for each in found.memories if each.kind == "memory"]
    assert all(each.explanation and each.explanation.parts.neighbour > 0 for each in memories)


async def test_memories_of_an_export_from_before_they_had_places_are_imported(
    engine: Engine, elsewhere: Engine, namespace: str
) -> None:
    await engine.memories.add(namespace, "Dana runs.", "fact", MemoryScope("ann", session_id="talk"))
    records = [json.loads(line) for line in await exported(engine, namespace)]
    old = [json.dumps({name: value for name, value in each.items() if name != "position"}) for each in records]
    report = await imported(elsewhere, old)
    assert not report.refused
    assert report.added["memory"] == 1
