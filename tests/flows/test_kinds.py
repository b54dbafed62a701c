"""Kinds: one that is described once is recalled, counted, exported, imported and forgotten like those that ship."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from recollect.engine import Engine
from recollect.errors import Invalid, NotFound
from recollect.flows.kinds import registry
from recollect.flows.kinds.target import USER, Target
from recollect.memory.index.search import Scope
from recollect.settings import Settings
from recollect.storage.embedded import Lease
from tests.flows.talk import say
from tests.flows.toy_kind.entry import BOOKMARK, BOOKMARKS, bookmark_source
from tests.storage.databases import empty_database, url

MIGRATION = Path(__file__).with_name("toy_kind") / "migration.sql"
ONLY_BOOKMARKS = Scope(kinds=("bookmark",))


@pytest.fixture
def pooling() -> str:
    """How connections are pooled does not matter here."""
    return "session"


@pytest.fixture
async def engine(server: Lease, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    """An engine on a database of its own, with one kind more."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, BOOKMARK))
    async with empty_database(server) as name:
        place = SecretStr(url(server.connection, name))
        engine = await Engine.open(settings.model_copy(update={"database_url": place}))
        async with engine.database.unscoped() as connection:
            await connection.execute(MIGRATION.read_text())
        yield engine
        await engine.close()


async def bookmark(engine: Engine, namespace: str, user_id: str, address: str, reason: str) -> str:
    async with engine.database.transaction(namespace) as tx:
        number, at = await BOOKMARKS.add(tx, user_id, address, reason)
        fields = {"id": number, "user_id": user_id, "address": address, "reason": reason, "created_at": at.isoformat()}
        await engine.capabilities.passages.add(tx, [bookmark_source(fields, {})])
    engine.indexer.wake()
    return str(number)


async def fill(engine: Engine, namespace: str) -> tuple[str, str]:
    await say(engine, namespace, "ann", "The ferry to the island leaves at noon")
    ferry = await bookmark(engine, namespace, "ann", "https://ferries.example", "The timetable of the island ferry")
    bread = await bookmark(engine, namespace, "bob", "https://bread.example", "A recipe for sourdough bread")
    return ferry, bread


async def recalled(engine: Engine, namespace: str, question: str) -> list[str]:
    found = await engine.recall.recall(namespace, question, ONLY_BOOKMARKS)
    return [memory.id for memory in found.memories]


async def exported(engine: Engine, namespace: str, user: str | None = None) -> list[str]:
    return [line async for line in engine.exporting.lines(namespace, user)]


async def test_it_is_recalled_alone_and_among_the_others(engine: Engine, namespace: str) -> None:
    ferry, _ = await fill(engine, namespace)
    assert (await recalled(engine, namespace, "When does the ferry leave?"))[0] == ferry
    found = (await engine.recall.recall(namespace, "island ferry")).memories
    assert {memory.kind for memory in found} >= {"message", "bookmark"}
    (shown,) = [memory for memory in found if (memory.kind, memory.id) == ("bookmark", ferry)]
    assert (shown.user_id, shown.metadata) == ("ann", {"address": "https://ferries.example"})


async def test_it_is_counted(engine: Engine, namespace: str) -> None:
    await fill(engine, namespace)
    report = await engine.status.report(namespace)
    assert (report.memory["bookmarks"].rows, report.memory["bookmarks"].exact) == (2, True)
    assert report.memory["messages"].rows == 1
    assert report.memory["passages"].rows == 3
    assert report.memory["bookmarks"].bytes > 0


async def test_one_is_forgotten_by_its_name_and_by_its_id(engine: Engine, namespace: str) -> None:
    ferry, bread = await fill(engine, namespace)
    target = Target.named(f"bookmark:{ferry}")
    assert (await engine.forget.count(namespace, target)).rows == {"bookmarks": 1, "passages": 1}
    assert (await engine.forget.forget(namespace, target)).rows == {"bookmarks": 1, "passages": 1}
    assert ferry not in await recalled(engine, namespace, "When does the ferry leave?")
    with pytest.raises(NotFound):
        await engine.forget.forget(namespace, target)
    assert (await engine.forget.item(namespace, bread)).rows == {"bookmarks": 1, "passages": 1}
    with pytest.raises(Invalid, match="bookmark"):
        Target.named("folder:1")


async def test_those_of_a_user_go_with_the_user(engine: Engine, namespace: str) -> None:
    ferry, bread = await fill(engine, namespace)
    counted = await engine.forget.count(namespace, Target(USER, "ann"))
    assert counted.rows == {"bookmarks": 1, "messages": 1, "passages": 2, "sessions": 1}
    assert (await engine.forget.forget(namespace, Target(USER, "ann"))).rows == counted.rows
    assert await recalled(engine, namespace, "ferry or bread") == [bread]
    assert ferry != bread


async def test_it_is_exported_and_found_where_it_is_imported(engine: Engine, namespace: str) -> None:
    ferry, _ = await fill(engine, namespace)
    lines = await exported(engine, namespace)
    assert [json.loads(line)["kind"] for line in lines[1:-1]] == ["session", "message", "bookmark", "bookmark"]
    ours = await exported(engine, namespace, "ann")
    assert [json.loads(line).get("address") for line in ours[1:-1]] == [None, None, "https://ferries.example"]

    other = f"{namespace}-other"
    report = await engine.importing.run(io.BytesIO("\n".join(lines).encode()), other)
    assert (report.added, report.refusals) == ({"session": 1, "message": 1, "bookmark": 2}, [])
    assert (await recalled(engine, other, "When does the ferry leave?"))[0] == ferry
    again = await engine.importing.run(io.BytesIO("\n".join(lines).encode()), other)
    assert (again.added, again.known["bookmark"]) == ({}, 2)


async def test_an_import_refuses_what_its_rules_do(engine: Engine, namespace: str) -> None:
    await fill(engine, namespace)
    lines = await exported(engine, namespace)
    broken = [line.replace("A recipe for sourdough bread", "") for line in lines]
    report = await engine.importing.run(io.BytesIO("\n".join(broken).encode()), f"{namespace}-other")
    assert report.added["bookmark"] == 1
    (refusal,) = report.refusals
    assert refusal.reason.startswith("reason is empty")
