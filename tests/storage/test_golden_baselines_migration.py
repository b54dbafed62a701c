"""A baseline from before each query had its own is carried over where it is certain what it was measured with."""

import pytest

from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from tests.storage.databases import connect, empty_database, url

# Of {"Which train?": [2, 10], "Grüße": [7]}, as the version before this migration computed it.
FINGERPRINT = "5d76e3529037951c8d981d32d2bdd1c909a9e8a2a5eea0a44759dda34049272f"

GOLDEN = """
insert into golden_queries (namespace, query, digest, expected_ids) values ($1, $2, $3, $4) returning id
"""
RUN = "insert into golden_runs values ($1, '2026-03-01', $2, 0.3, false, 2, $3, now())"
RESULT = "insert into golden_results values ($1, '2026-03-01', $2, 'short', $3, '{}')"


async def test_the_baseline_of_an_unchanged_golden_set_is_kept(server: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    version = next(step.version for step in every if step.name == "golden_baselines")
    async with empty_database(server) as name:
        database = await Database.open({"dsn": url(server.connection, name)})
        monkeypatch.setattr(migrate, "migrations", lambda: [step for step in every if step.version < version])
        await migrate.migrate(database)
        raw = await connect(server.connection, name)
        ids = {}
        for namespace, precision in (("same", 0.3), ("replaced", 0.2), ("changed", 0.3)):
            await raw.execute("select set_config('recollect.namespace', $1, false)", namespace)
            first = await raw.fetchval(GOLDEN, namespace, "Which train?", b"1", [10, 2])
            second = await raw.fetchval(GOLDEN, namespace, "Grüße", b"2", [7] if namespace != "changed" else [7, 8])
            await raw.execute(GOLDEN, namespace, "to be judged", b"3", [])
            await raw.execute("insert into golden_baselines values ($1, 0.3, $2, '2026-03-01')", namespace, FINGERPRINT)
            await raw.execute(RUN, namespace, precision, FINGERPRINT)
            for query, hits in ((first, 2), (second, 1)):
                await raw.execute(RESULT, namespace, query, hits)
            ids[namespace] = [first, second]
        monkeypatch.undo()
        await migrate.migrate(database)
        kept = {}
        for namespace in ids:
            await raw.execute("select set_config('recollect.namespace', $1, false)", namespace)
            kept[namespace] = await raw.fetch("select query_id, expected_ids, hits from golden_query_baselines")
        await raw.close()
        await database.close()
    assert sorted(map(tuple, kept["same"])) == [(ids["same"][0], [10, 2], 2), (ids["same"][1], [7], 1)]
    assert (kept["replaced"], kept["changed"]) == ([], [])
