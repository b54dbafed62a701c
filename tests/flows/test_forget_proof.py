"""The proof that forgetting forgets: every table is searched for what a user said, and compared for what others did."""

from collections import Counter
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from recollect.engine import Engine
from recollect.flows.cognitive.golden_test import Entry
from recollect.flows.feed import MAX_LIMIT
from recollect.flows.gateway import Owner, Said
from recollect.flows.keyed.operations import PutRecord
from recollect.flows.kinds.target import NAMESPACE, SESSION, USER, Target
from recollect.flows.long_term.memory_requests import Change, Options
from recollect.flows.remember import Turn
from recollect.flows.stores import rules
from recollect.flows.stores.files import Edit
from recollect.language import bm25, words
from recollect.memory.accounts.connections import NewConnection
from recollect.memory.cognitive.judging import Evaluation, JudgeScore, Judging
from recollect.memory.index.giants import Giant
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.windows import WindowConfig
from recollect.storage import vector_index
from recollect.storage.sql import Query
from tests.flows.threads import put_thread
from tests.storage.test_isolation import fill

pytestmark = pytest.mark.unindexed(
    "it leaves a namespace to a model that nobody has, and compares rows that an indexer would change"
)

# Nobody else says these words, and nobody else has this name.
SENTENCE = "The zyxomlurk keeps a quvantrel behind the brindlefex."
UNUSUAL = ("zyxomlurk", "quvantrel", "brindlefex")
PERSON = "Hespervald"

# Tokens: fewer than were said, and a quarter of them, which a summary may have, is room for the sentence.
WINDOW = 80

TABLES = """
select c.relname as name, exists (
    select from pg_attribute a where a.attrelid = c.oid and a.attname = 'namespace'
) as scoped
from pg_class c
where c.relkind in ('r', 'p') and c.relpersistence = 'p' and c.relnamespace = current_schema()::regnamespace
  and c.relname !~ '_[0-9]{6}$'  -- the shards of a cluster
order by c.relname
"""
WORDS_WITH = Query.named(
    "test.keys", "select id from passage_words where namespace = :namespace and keys && :keys::bigint[]"
)
TERMS = Query.named(
    "test.terms", "select term from term_stats where namespace = :namespace and term = any(:terms::int[])"
)
COUNTED = Query.named("test.counted", "select term, df from term_stats where namespace = :namespace")
WAITING = Query.named("test.waiting", "insert into passage_queue (namespace, id, owner) values (:namespace, 1, 'user')")
WEIGHTS = Query.named("test.weights", "select weights::text as weights from passage_words where namespace = :namespace")

# They say by ids that something was forgotten.
FEED = {"changes", "change_counters"}

Rows = dict[str, list[str]]


class Planted(NamedTuple):
    """What was planted for the person and cannot be told to be the person's."""

    orphans: list[str]
    mixed: int


async def tables(engine: Engine) -> list[str]:
    """Every table that keeps anything; only the ledger of migrations knows no namespace."""
    async with engine.database.unscoped() as connection:
        rows = await connection.fetch(TABLES)
    assert [row["name"] for row in rows if not row["scoped"]] == ["recollect_migrations"]
    return [row["name"] for row in rows if row["scoped"]]


async def everything(engine: Engine, namespace: str) -> Rows:
    """Each row of each table as text."""
    found: Rows = {}
    for table in await tables(engine):
        query = Query.named(
            f"test.{table}", f"select t::text as row from {table} t where namespace = :namespace order by 1"
        )
        async with engine.database.reading(namespace) as db:
            found[table] = [row["row"] for row in await db.all(query)]
    return found


async def shown(engine: Engine, namespace: str) -> dict[tuple[str, str], object]:
    """What the feed shows of items that are there."""
    page = await engine.feed.page(namespace, limit=MAX_LIMIT)
    changes = ((entry.change, entry.content) for entry in page.entries if entry.content is not None)
    return {(change.kind, f"{change.item_id} {change.detail}"): content for change, content in changes}


def telling(rows: Rows, *texts: str) -> list[tuple[str, str]]:
    """The rows in which any of some texts stands."""
    return [
        (table, row) for table, of_table in rows.items() for row in of_table for text in texts if text in row.lower()
    ]


async def keyed(engine: Engine, namespace: str) -> int:
    """How many passages and counts are left that the unusual words have a key to."""
    terms = words.document_terms(f"{SENTENCE} {PERSON}")
    terms = [term for term in terms if any(term[:6] in word for word in (*UNUSUAL, PERSON.lower()))]
    assert len(terms) >= 4
    keys = [key for owner in (None, PERSON, "Ann") for key in bm25.keys(namespace, owner, terms)]
    async with engine.database.reading(namespace) as db:
        found = await db.all(WORDS_WITH, keys=keys)
        counted = await db.all(TERMS, terms=[bm25.dimension(term) for term in terms])
    return len(found) + len(counted)


async def sound(engine: Engine, namespace: str) -> bool:
    """Whether the counts of words are those of the passages that are there; all of them must be indexed."""
    async with engine.database.reading(namespace) as db:
        counted = {row["term"]: row["df"] for row in await db.all(COUNTED)}
        weights = [row["weights"] for row in await db.all(WEIGHTS)]
    expected = Counter({bm25.ALL_PASSAGES: len(weights)} if weights else {})
    for encoded in weights:
        expected.update(int(entry.split(":")[0]) for entry in encoded[1 : encoded.index("}")].split(","))
    return counted == expected


async def others(engine: Engine, namespace: str) -> int:
    """What others said and keep: the same things, in other words. Returns an insight of theirs."""
    await engine.access.create_key(namespace)
    await engine.access.create_user_key(namespace, "Ann")
    ann = Owner(namespace, "Ann")
    await engine.remember.session(namespace, "letters", "Ann", "Letters")
    (said,) = await engine.remember.turn(namespace, Turn("letters", (NewMessage("user", "The cat keeps a secret."),)))
    await engine.windows.configure(namespace, "letters", WindowConfig("token_threshold", max_tokens=1))
    await engine.windows.add(namespace, "letters", [NewMessage("user", "It purrs."), NewMessage("user", "It sleeps.")])
    await engine.windows.context(namespace, "letters")
    await engine.gateway.add(ann, "chat:1", [Said("Ann", "user", 1780000000000, "Behind the door is a cat.")])
    await engine.gateway.put_resource(ann, "file:cat", "How to keep a cat.")
    await store(engine, namespace, "Ann", "Keep a cat.", "Keep two cats.")
    await engine.memories.add(namespace, "Ann keeps a cat.", "fact", MemoryScope("Ann", session_id="diary"))
    removed = await engine.memories.add(namespace, "Ann keeps a dog.", "fact", MemoryScope("Ann"))
    await engine.memories.delete(namespace, str(removed.memory.id))
    await engine.record_store.batch(namespace, [PutRecord(("Ann",), "pet", {"keeps": "a cat"}, ttl_minutes=60)], "Ann")
    await put_thread(engine, namespace, "thread of Ann", "Ann", "a cat")
    await engine.remember.document(namespace, "On the keeping of cats.", None, None)
    await engine.cognition.store_episode(namespace, "How to keep a cat?", 0.5, "Behind a door.")
    await engine.cognition.update_working(namespace, "the cat", 0.5)
    insight = (await engine.cognition.compress(namespace, "Cats keep secrets.", [said.seq])).insight.id
    await engine.graph.add_node(namespace, "Animal", "cat")
    await engine.graph.add_edge(namespace, "cat", "secret", "KEEPS")
    (golden,) = await engine.golden_test.add(namespace, [Entry("what do cats keep", [insight])])
    await judged(engine, namespace, golden.id, insight, "It tells of cats.")
    await engine.indexer.flush(namespace)
    return golden.id


async def store(engine: Engine, namespace: str, user_id: str, content: str, later: str) -> str:
    """A store of a user with a file that has changed and one that is deleted; returns its id."""
    made = await engine.stores.create(namespace, content, content, {"user_id": user_id, "note": content})
    store_id = rules.shown(rules.STORE, made.id)
    for path in (f"/{content}/kept.md", f"/{content}/deleted.md"):
        file = await engine.files.create(namespace, store_id, path, content)
        file_id = rules.shown(rules.FILE, file.id)
        await engine.files.change(namespace, store_id, file_id, Edit(content=later))
    await engine.files.delete(namespace, store_id, file_id)
    return store_id


async def judged(engine: Engine, namespace: str, query_id: int, insight: int, reason: str) -> None:
    score = JudgeScore(insight, 1.0, reason, 0.0, reason)
    async with engine.database.transaction(namespace) as tx:
        await Judging().add(
            tx, Evaluation(query_id, "what do cats keep", "one", "two", 1.0, 0.0, 0.0, "slight", (score,))
        )


async def plant(engine: Engine, namespace: str, golden: int) -> Planted:
    """The sentence by every way in, for one person; where nobody can tell whose it is, it is named instead."""
    owner = Owner(namespace, PERSON)
    await engine.access.create_user_key(namespace, PERSON)
    await engine.remember.session(namespace, "diary", PERSON, SENTENCE, f'{{"note": "{SENTENCE}"}}')
    lines = (NewMessage("user", SENTENCE, speaker=PERSON),) * 3
    said = await engine.remember.turn(namespace, Turn("diary", lines))
    logged = await engine.cognition.store_dialogue(namespace, "diary", PERSON, SENTENCE, {"note": SENTENCE})
    await engine.conversations.record(namespace, "diary", SENTENCE, SENTENCE, None)
    await engine.windows.configure(namespace, "diary", WindowConfig("token_threshold", max_tokens=WINDOW))
    await engine.windows.add(namespace, "diary", [NewMessage("user", SENTENCE), NewMessage("user", SENTENCE)])
    await engine.windows.context(namespace, "diary")
    await engine.gateway.add(owner, "chat:1", [Said(PERSON, "user", 1780000000000, SENTENCE)])
    await engine.gateway.put_resource(owner, "file:zyxomlurk", "Nothing yet.", SENTENCE)
    await engine.gateway.put_resource(owner, "file:zyxomlurk", SENTENCE, SENTENCE, {"note": SENTENCE})
    record = PutRecord((SENTENCE,), SENTENCE, {"note": SENTENCE}, vectors=[[1.0]], ttl_minutes=60)
    await engine.record_store.batch(namespace, [record], PERSON)
    await put_thread(engine, namespace, "their thread", PERSON, SENTENCE)
    await plant_memories(engine, namespace)
    await store(engine, namespace, PERSON, SENTENCE, f"{SENTENCE} Always.")
    insight = (await engine.cognition.compress(namespace, SENTENCE, [said[0].seq, logged.seq])).insight.id
    await engine.graph.add_node(namespace, "Animal", "cat", vector_id=insight)
    await judged(engine, namespace, golden, insight, SENTENCE)
    async with engine.database.transaction(namespace) as tx:
        (of_ann,) = await engine.capabilities.log.recent(tx, "letters", 1)
        await engine.capabilities.giants.remember(tx, Giant(PERSON, "some model", 1, f"giant_{namespace[-12:]}_1", 384))
    mixed = (await engine.cognition.compress(namespace, SENTENCE, [said[1].seq, of_ann.seq])).insight.id
    node = await plant_node(engine, namespace)
    document = await engine.remember.document(namespace, SENTENCE * 50, None, f'{{"note": "{SENTENCE}"}}')
    episode = (await engine.cognition.store_episode(namespace, SENTENCE, 0.5, SENTENCE)).episode.id
    async with engine.database.transaction(namespace) as tx:
        archived = await engine.capabilities.working.archive(
            tx, (await engine.capabilities.working.update(tx, SENTENCE, 0.5)).added_id
        )
    working = (await engine.cognition.update_working(namespace, SENTENCE, 0.5)).added_id
    orphans = [f"document:{document}", f"episode:{episode}", f"working:{working}", f"stale:{archived}", node]
    return Planted(orphans, mixed)


async def plant_node(engine: Engine, namespace: str) -> str:
    """Told by a node and an edge, now and in other words before."""
    for note in (SENTENCE, f"{SENTENCE} Always."):
        node = await engine.graph.add_node(namespace, "Animal", "zyxomlurk", {"note": note})
        await engine.graph.add_edge(namespace, "cat", "zyxomlurk", "FEARS", properties={"note": note})
    return f"node:{node.id}"


async def plant_memories(engine: Engine, namespace: str) -> None:
    """In force, changed, deleted, superseded, and of a session of the person's alone."""
    for holder in (MemoryScope(PERSON), MemoryScope(PERSON, "robot", "letters"), MemoryScope(session_id="diary")):
        kept = (await engine.memories.add(namespace, SENTENCE, "fact", holder, {"note": SENTENCE})).memory
        await engine.memories.update(namespace, str(kept.id), Change(f"{SENTENCE} Always."))
        gone = (await engine.memories.add(namespace, f"{SENTENCE} Never.", "fact", holder)).memory
        await engine.memories.delete(namespace, str(gone.id))
    for number in ("Once.", "Twice."):
        keyed = Options(key=SENTENCE[:40], valid_from=datetime(2024, 1, 1, tzinfo=UTC))
        await engine.memories.add(namespace, f"{SENTENCE} {number}", "fact", MemoryScope(PERSON), options=keyed)


@pytest.mark.parametrize("indexed", [True, False])
async def test_nothing_of_a_user_is_left_in_any_table_and_others_keep_every_row(
    engine: Engine, namespace: str, indexed: bool
) -> None:
    golden = await others(engine, namespace)
    before, shown_before = await everything(engine, namespace), await shown(engine, namespace)
    assert not telling(before, *UNUSUAL, PERSON.lower())
    assert await keyed(engine, namespace) == 0
    planted = await plant(engine, namespace, golden)
    if indexed:
        await engine.indexer.flush(namespace)
    told = {table for table, _ in telling(await everything(engine, namespace), *UNUSUAL)}
    assert told == {
        "checkpoint_values",
        "checkpoint_writes",
        "checkpoints",
        "documents",
        "episodes",
        "graph_edge_versions",
        "graph_edges",
        "graph_node_versions",
        "graph_nodes",
        "insights",
        "judge_scores",
        "memories",
        "memory_history",
        "memory_stores",
        "memory_versions",
        "messages",
        "passages",
        "records",
        "resources",
        "sessions",
        "stale_items",
        "store_files",
        "store_versions",
        "summaries",
        "working_items",
    }
    assert await keyed(engine, namespace) > 0

    target = Target(USER, PERSON)
    expected = await engine.forget.count(namespace, target)
    receipt = await engine.forget.forget(namespace, target)
    assert receipt == expected
    assert receipt.insights_left == (planted.mixed,)
    assert {kind: count for kind, count in receipt.rows.items() if kind != "passages"} == {
        "api_keys": 1,
        "checkpoint_values": 1,
        "checkpoint_writes": 1,
        "checkpoints": 1,
        "giants": 1,
        "insights": 1,
        "judge_scores": 1,
        "memories": 5,
        "memory_history": 15,
        "memory_stores": 1,
        "memory_versions": 4,
        "messages": 9,
        "records": 1,
        "resources": 1,
        "sessions": 2,
        "store_files": 1,
        "store_versions": 5,
        "summaries": 1,
    }
    for item_id in (*planted.orphans, f"insight:{planted.mixed}"):
        await engine.forget.item(namespace, item_id)

    after = await everything(engine, namespace)
    assert telling(after, *UNUSUAL, PERSON.lower()) == []
    assert await keyed(engine, namespace) == 0
    for table in before.keys() - FEED:
        assert after[table] == before[table], table
    assert await shown(engine, namespace) == shown_before


async def test_a_session_goes_with_its_memories_and_the_user_keeps_the_rest(engine: Engine, namespace: str) -> None:
    golden = await others(engine, namespace)
    planted = await plant(engine, namespace, golden)
    await engine.indexer.flush(namespace)
    target = Target(SESSION, "diary")
    expected = await engine.forget.count(namespace, target)
    receipt = await engine.forget.forget(namespace, target)
    assert receipt == expected
    assert receipt.what == "session:diary"
    assert receipt.insights_left == (planted.mixed,)
    # Ann's memory of that session is one of them: whoever holds it besides, the session does.
    assert (receipt.rows["messages"], receipt.rows["memories"]) == (8, 2)
    assert await sound(engine, namespace)
    left = await everything(engine, namespace)
    assert len(left["messages"]) == 5
    assert telling({"resources": left["resources"], "memories": left["memories"]}, PERSON.lower())
    assert not telling({name: left[name] for name in ("sessions", "summaries", "messages")}, "diary")


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_namespace_goes_from_every_table_with_its_indexes_and_keys(engine: Engine, namespace: str) -> None:
    other = f"{namespace}-other"
    for place in (namespace, other):
        await fill(engine, place)
        key = await engine.access.create_key(place)
        await engine.indexer.flush(place)
    await engine.grants.grant(namespace, other, key.id)
    index = vector_index.name_for(namespace, "some model", "user", 7)
    await vector_index.create(engine.database, index, namespace, "some model", 384, "user", 7)
    async with engine.database.transaction(namespace) as tx:
        await engine.capabilities.giants.remember(tx, Giant("user", "some model", 7, index, 384))
        await tx.all(WAITING)
        await engine.capabilities.clients.add(tx, "client", None, ["https://app.example.org"], None)
        await engine.capabilities.connections.add(
            tx, NewConnection("connection", key.id, "client", None, "https://app.example.org", "/mcp", "", "read")
        )
        await engine.capabilities.connections.add_token(tx, "connection", b"hash", "access", "read", 60)
    kept = await everything(engine, other)
    full = await everything(engine, namespace)
    assert [table for table, rows in full.items() if not rows] == []

    target = Target(NAMESPACE, namespace)
    expected = await engine.forget.count(namespace, target)
    assert expected.rows == {table: len(rows) for table, rows in full.items()}
    assert await engine.forget.forget(namespace, target) == expected
    assert {table: rows for table, rows in (await everything(engine, namespace)).items() if rows} == {}
    assert await everything(engine, other) == kept
    assert not await vector_index.exists(engine.database, index)
    assert await engine.access.is_open(namespace)
