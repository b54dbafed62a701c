"""Memories of an older schema: metadata keeps its values, and histories of deleted memories lose their texts."""

import pytest

from recollect.identifiers import uuid7
from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

BEFORE = next(step.version for step in migrate.migrations() if step.name.endswith("memories_as_given"))

MEMORY = """
insert into memories (namespace, id, text, category, metadata, identity, origin)
values ('one', $1, 'Tea.', 'fact', '{"a": [1, null]}', 'x', 'x')
"""
HISTORY = """
insert into memory_history (namespace, memory_id, number, id, event, old_memory, new_memory)
values ('one', $1, $2, gen_random_uuid(), $3, $4, $5)
"""
READ = "select memory_id, event, old_memory, new_memory from memory_history order by memory_id, number"


async def test_only_a_memory_that_is_there_keeps_the_texts_of_its_history(
    server: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrate.migrations()
    kept, gone = sorted(uuid7() for _ in range(2))
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < BEFORE])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        await raw.execute("select set_config('recollect.namespace', 'one', false)")
        await raw.execute(MEMORY, kept)
        for memory_id in (kept, gone):
            await raw.execute(HISTORY, memory_id, 1, "create", None, "Tea.")
        await raw.execute(HISTORY, gone, 2, "delete", "Tea.", None)
        monkeypatch.undo()
        await migrate.migrate(database)
        history = [tuple(row) for row in await raw.fetch(READ)]
        metadata = await raw.fetchval("select metadata::text from memories")
        forced = await raw.fetchval(
            "select bool_and(relforcerowsecurity) from pg_class where relname in ('memories', 'memory_history')"
        )
        await raw.close()
        await database.close()
    assert history == [(kept, "create", None, "Tea."), (gone, "create", None, None), (gone, "delete", None, None)]
    assert metadata == '{"a": [1, null]}'
    assert forced
