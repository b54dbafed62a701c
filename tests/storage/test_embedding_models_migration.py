"""A database from before there was a choice of models keeps the model that its vectors are of."""

import pytest

from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

VECTORS = """
insert into passage_vectors (namespace, id, kind, owner, model, embedding)
select namespace, id, 'message', '', model, '[1,0,0]' from unnest($1::text[], $2::bigint[], $3::text[])
as v (namespace, id, model)
"""
ROWS = [("one", 1, "old"), ("one", 2, "new"), ("one", 3, "new"), ("two", 1, "old")]


async def test_each_namespace_stays_with_the_model_of_most_of_its_vectors(
    server: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrate.migrations()
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < 12])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        await raw.execute(VECTORS, *map(list, zip(*ROWS, strict=True)))
        monkeypatch.undo()
        await migrate.migrate(database)
        active = {}
        for namespace in ("one", "two", "three"):
            await raw.execute("select set_config('recollect.namespace', $1, false)", namespace)
            active[namespace] = await raw.fetchval("select active from embedding_models")
        await raw.close()
        await database.close()
    assert active == {"one": "new", "two": "old", "three": None}
