"""Histories from before forgetting learn whose memories they are of, where the memory is still there."""

from uuid import uuid4

import pytest

from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

MEMORY = """
insert into memories (namespace, id, text, category, user_id, session_id, metadata, identity, origin)
values ($1, $2, 'Owls hoot.', 'fact', 'ann', 'talk', '{}', '', '')
"""
HISTORY = """
insert into memory_history (namespace, memory_id, number, id, event, new_memory)
values ($1, $2, 1, gen_random_uuid(), 'create', 'Owls hoot.')
"""


async def test_a_history_is_of_the_holder_of_its_memory(server: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    kept, deleted = uuid4(), uuid4()
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < 13])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        await raw.execute("select set_config('recollect.namespace', 'one', false)")
        await raw.execute(MEMORY, "one", kept)
        for memory_id in (kept, deleted):
            await raw.execute(HISTORY, "one", memory_id)
        monkeypatch.undo()
        await migrate.migrate(database)
        rows = await raw.fetch("select memory_id, user_id, session_id from memory_history")
        forced = await raw.fetchval(
            "select bool_and(relforcerowsecurity) from pg_class where relname in ('memories', 'memory_history')"
        )
        await raw.close()
        await database.close()
    assert {tuple(row) for row in rows} == {(kept, "ann", "talk"), (deleted, None, None)}
    assert forced
