"""What a namespace has stored, for tests that nothing has changed."""

from recollect.engine import Engine
from recollect.storage.sql import Query

# These change by themselves: keys note their use, recalls are counted, and the indexer derives what it searches.
_TABLES = """
select table_name as name from information_schema.columns
where $1::text is not null and table_schema = 'public' and column_name = 'namespace'
  and table_name !~ '^(api_keys|activity|passage|term_|embedding_models|change_counters)'
order by name
"""
_ROWS = """
select md5(string_agg(t::text, '' order by t::text)) as rows from {} t
where namespace = $1 and ($2::text is null or strpos(t::text, $2) = 0)
"""


async def stored_rows(engine: Engine, namespace: str, besides: str | None = None) -> dict[str, str | None]:
    """All rows of each table as one value, but for those that have a word in them."""
    async with engine.database.reading(namespace) as db:
        names = [row["name"] for row in await db.all(Query("tests.tables", _TABLES))]
        assert "memories" in names
        return {
            name: (await db.one(Query("tests.rows", _ROWS.format(name), ("besides",)), besides=besides))["rows"]
            for name in names
        }
