"""One tenant can never see another: row-level security under every statement, on a raw connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest

from recollect.engine import Engine
from recollect.flows.cognitive.golden_test import Entry
from recollect.flows.gateway import Owner
from recollect.flows.keyed.operations import PutRecord
from recollect.flows.long_term.memory_requests import Options
from recollect.flows.remember import Turn
from recollect.flows.stores.rules import STORE, shown
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.memory.accounts import audit
from recollect.memory.cognitive.judging import Evaluation, JudgeScore, Judging
from recollect.memory.index.giants import Giant
from recollect.memory.index.held import NewlyHeld
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.windows import WindowConfig
from recollect.quotas import Quota, Subject
from recollect.settings import Settings
from tests.flows.threads import put_thread
from tests.storage.databases import RawConnection

pytestmark = pytest.mark.unindexed(
    "it leaves a namespace to a model that nobody has, and compares rows that an indexer would change"
)

# Tables that hold no content: the ledger of migrations knows no namespace, keys and tokens are looked up before one is
# known, and what is derived from passages has no text; a policy there would keep the planner from the index on words.
WITHOUT_POLICY = {
    "recollect_migrations",
    "api_keys",
    "key_grants",
    "connections",
    "connection_tokens",
    "passage_words",
    "passage_vectors",
    "passage_queue",
    "term_stats",
    "record_expiries",
}


# Of the whole deployment: what no tenant can see, none can fill.
OF_NO_TENANT = {"model_turns", "model_requests", "oauth_clients"}


@pytest.fixture
async def raw(settings: Settings, engine: Engine) -> AsyncIterator[RawConnection]:
    assert settings.database_url is not None
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    yield connection
    await connection.close()


async def content_tables(raw: RawConnection) -> list[str]:
    # Without the shards of a cluster, which are seen through their tables.
    rows = await raw.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace "
        "and relname !~ '_[0-9]{6}$'"
    )
    return sorted({row["relname"] for row in rows} - WITHOUT_POLICY)


async def fill(engine: Engine, namespace: str) -> None:
    turn = Turn("session", (NewMessage("user", "a secret of this namespace"),), owner_if_new="user")
    await engine.remember.turn(namespace, turn)
    await engine.remember.document(namespace, "another secret", None, None)
    await engine.graph.add_edge(namespace, "a secret", "its keeper", "KEPT_BY")
    await engine.graph.add_edge(namespace, "a secret", "its keeper", "KEPT_BY", "Secret", weight=0.5)
    for text in ("a secret to remember", "another secret to remember"):
        await engine.memories.add(namespace, text, "fact", MemoryScope("user"), options=Options(key="secret"))
    await engine.gateway.put_resource(Owner(namespace, "user"), "file:///secret", "a secret in a file")
    store = shown(STORE, (await engine.stores.create(namespace, "secrets", metadata={"user_id": "user"})).id)
    await engine.files.create(namespace, store, "/secret.md", "a secret in a store")
    kept = PutRecord(("secrets",), "one", {"text": "a secret under a key"}, vectors=[[0.5, 1.0]], ttl_minutes=60)
    await engine.record_store.batch(namespace, [kept], "user")
    await put_thread(engine, namespace, "a thread", "user", "a secret state")
    await engine.windows.configure(namespace, "window", WindowConfig("token_threshold", max_tokens=1))
    await engine.windows.add(
        namespace, "window", [NewMessage("user", "an old secret"), NewMessage("user", "the latest secret")]
    )
    await engine.windows.context(namespace, "window")
    said = await engine.cognition.store_dialogue(namespace, "another session", "user", "psst")
    stored = await engine.cognition.compress(namespace, "a golden secret", [said.seq])
    (golden,) = await engine.golden_test.add(namespace, [Entry("which secret is golden", [stored.insight.id])])
    await engine.golden_test.run(namespace)
    async with engine.database.transaction(namespace) as tx:
        used = [{"event": "read", "kind": "message", "count": 1, "ids": ["a secret id"]}]
        await engine.capabilities.audit.append(tx, [audit.Entry(None, "user", "rest", "recall", "done", None, used)])
        verdict = JudgeScore(stored.insight.id, 1.0, "it tells the secret", 0.0, "it keeps the secret")
        evaluation = Evaluation(golden.id, golden.query, "one", "two", 1.0, 0.0, 0.0, "slight", (verdict,))
        await Judging().add(tx, evaluation)
        await engine.capabilities.insights.add(tx, "a secret in short", [1], 1.0, {})
        await engine.capabilities.episodes.add(tx, "how to keep a secret", 1.0, "tell nobody")
        await engine.capabilities.working.archive(
            tx, (await engine.capabilities.working.update(tx, "an old secret", 0.5)).added_id
        )
        await engine.capabilities.working.update(tx, "the secret of today", 0.5)
        await engine.capabilities.held.put(
            tx, [NewlyHeld("document", "one", "held", ["it tells the secret"], "document", b"", None, "library")]
        )
        await engine.capabilities.held.add_masked(tx, {"secret": 1})
        await engine.capabilities.giants.remember(tx, Giant("user", "some model", 1, "no_such_index", 384))
        await engine.namespace_models.is_settled_on(tx, "some model")
        await engine.capabilities.quota_use.take_requests(tx, Subject("user", "user", Quota()), datetime.now(UTC), 1)
    await engine.spending.settle(
        await engine.spending.reserve(Purpose(namespace, "judges", "some model"), 10), Tokens(5, 5)
    )
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.jobs.add(tx, uuid4(), "import", {"file": "secrets.zip"}, "the keeper of secrets", 30)
    await engine.recall.recall(namespace, "Which secret is golden?")
    await engine.activity.flush()


async def test_no_content_table_shows_a_row_to_another_namespace(
    engine: Engine, namespace: str, raw: RawConnection
) -> None:
    await fill(engine, namespace)
    tables = await content_tables(raw)
    assert {"sessions", "messages", "documents"} <= set(tables)
    for setting in (None, f"test-{uuid4()}", ""):
        if setting is not None:
            await raw.execute("select set_config('recollect.namespace', $1, false)", setting)
        for table in tables:
            assert await raw.fetchval(f"select count(*) from {table}") == 0, (table, setting)
            assert await raw.fetchval(f"select count(*) from {table} where namespace = $1", namespace) == 0
            assert await raw.execute(f"delete from {table} where namespace = $1", namespace) == "DELETE 0"
            with suppress(asyncpg.FeatureNotSupportedError):  # Citus lets nobody do that
                assert await raw.execute(f"update {table} set namespace = namespace") == "UPDATE 0"
    async with engine.database.reading(namespace) as db:
        for table in set(tables) - OF_NO_TENANT:
            own = await db._connection.fetchval(f"select count(*) from {table}")
            assert own > 0, f"{table} is not filled by this test"


async def test_a_row_cannot_be_written_into_another_namespace(
    engine: Engine, namespace: str, raw: RawConnection
) -> None:
    own = f"test-{uuid4()}"
    await fill(engine, own)
    await raw.execute("select set_config('recollect.namespace', $1, false)", own)
    for table in set(await content_tables(raw)) - OF_NO_TENANT:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError)):
            await raw.execute(f"update {table} set namespace = $1", namespace)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await raw.execute("insert into sessions (namespace, id, user_id) values ($1, 's', 'u')", namespace)


async def test_a_cancelled_change_of_namespace_leaves_no_connection_that_lies(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    await fill(engine, namespace)

    async def read(place: str) -> int:
        async with engine.database.reading(place) as db:
            return len(await engine.capabilities.log.recent(db, "session", 10))

    for turns in range(60):
        assert await read(namespace) == 1
        switching = asyncio.create_task(read(other))
        for _ in range(turns % 12):
            await asyncio.sleep(0)
        switching.cancel()
        await asyncio.gather(switching, return_exceptions=True)


async def test_one_pool_serves_two_namespaces_without_mixing_them(engine: Engine, namespace: str) -> None:
    other = f"test-{uuid4()}"
    for _ in range(3):
        await fill(engine, namespace)
        async with engine.database.reading(other) as db:
            assert await engine.capabilities.log.recent(db, "session", 10) == []
        async with engine.database.reading(namespace) as db:
            assert len(await engine.capabilities.log.recent(db, "session", 10)) > 0


async def test_the_role_of_the_embedded_server_is_ordinary(raw: RawConnection) -> None:
    row = await raw.fetchrow("select rolsuper, rolbypassrls from pg_roles where rolname = current_user")
    assert row is not None
    assert tuple(row) == (False, False)
