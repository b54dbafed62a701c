"""A database from before passages named the first of their item learns it, and large owners are indexed anew."""

import pytest

from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

BEFORE = next(step.version for step in migrate.migrations() if step.name == "heads")

ROWS = """
insert into passages (namespace, kind, item_id, part, owner, at, text)
select namespace, 'memory', item, part, '', now(), 'text'
from (values ('one', 'a', 0), ('one', 'a', 1), ('one', 'a', 2), ('one', 'b', 0), ('two', 'a', 0))
as p (namespace, item, part);
insert into passage_words (namespace, id, kind, keys, weights)
select namespace, id, kind, '{1}', '{1:1}/1000000000' from passages;
insert into passage_vectors (namespace, id, kind, owner, model, embedding)
select namespace, id, kind, owner, 'm', '[1,0,0]' from passages;
create index giant_one on passage_vectors using hnsw ((embedding::halfvec(3)) halfvec_cosine_ops)
where namespace = 'one';
create index giant_two on passage_vectors using hnsw ((embedding::halfvec(3)) halfvec_cosine_ops)
where namespace = 'two';
insert into giants (namespace, owner, whole, model, watermark, index_name, dimensions)
values ('one', '', true, 'm', 9, 'giant_one', 3), ('two', '', true, 'm', 9, 'giant_two', 3);
"""
FORCED = "alter table {} {} row level security"
HEADS = """
select passages.namespace, item_id, part, (select part from passages head where head.id = derived.head) as head
from {} derived join passages on passages.namespace = derived.namespace and passages.id = derived.id
order by 1, 2, 3
"""


async def test_every_passage_but_the_first_names_the_first(server: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < BEFORE])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        for table in ("passages", "giants"):
            await raw.execute(FORCED.format(table, "no force"))
        await raw.execute(ROWS)
        for table in ("passages", "giants"):
            await raw.execute(FORCED.format(table, "force"))
        monkeypatch.undo()
        await migrate.migrate(database)
        forced = await raw.fetchval("select bool_and(relforcerowsecurity) from pg_class where relname = 'passages'")
        for table in ("passages", "giants"):
            await raw.execute(FORCED.format(table, "no force"))
        heads = {table: await raw.fetch(HEADS.format(table)) for table in ("passage_words", "passage_vectors")}
        kept = await raw.fetch("select index_name from giants")
        indexes = await raw.fetch("select relname from pg_class where starts_with(relname, 'giant_')")
        await raw.close()
        await database.close()
    expected = [
        ("one", "a", 0, None),
        ("one", "a", 1, 0),
        ("one", "a", 2, 0),
        ("one", "b", 0, None),
        ("two", "a", 0, None),
    ]
    for rows in heads.values():
        assert [tuple(row) for row in rows] == expected
    assert forced
    assert [row[0] for row in kept] == ["giant_two"]
    assert [row[0] for row in indexes] == ["giant_two"]
