"""A database from before words knew when they are over learns it from their passages, in every namespace."""

import pytest

from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

BEFORE = next(step.version for step in migrate.migrations() if step.name == "expiry")

ROWS = """
insert into passages (namespace, kind, item_id, part, owner, at, text, expires_at)
values ('one', 'memory', 'a', 0, '', now(), 'text', '2026-01-01Z'),
       ('one', 'memory', 'b', 0, '', now(), 'text', null),
       ('two', 'past_memory', 'c', 0, '', now(), 'text', '2026-01-02Z');
insert into passage_words (namespace, id, kind, keys, weights)
select namespace, id, kind, '{1}', '{1:1}/1000000000' from passages;
"""
FORCED = "alter table passages {} row level security"


async def test_words_expire_with_their_passages(server: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < BEFORE])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        await raw.execute(FORCED.format("no force"))
        await raw.execute(ROWS)
        await raw.execute(FORCED.format("force"))
        monkeypatch.undo()
        await migrate.migrate(database)
        forced = await raw.fetchval("select relforcerowsecurity from pg_class where relname = 'passages'")
        rows = await raw.fetch("select namespace, kind, expires_at::date::text from passage_words order by id")
        await raw.close()
        await database.close()
    assert forced
    assert [tuple(row) for row in rows] == [
        ("one", "memory", "2026-01-01"),
        ("one", "memory", None),
        ("two", "past_memory", "2026-01-02"),
    ]
