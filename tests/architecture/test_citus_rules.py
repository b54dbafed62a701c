"""The schema and the statements would run distributed by namespace: read from the catalogue and the `.sql` files."""

import re
from collections import Counter
from pathlib import Path

import recollect
from recollect.engine import Engine
from recollect.storage.sql import read_blocks

# The ledger of migrations is the only table that no namespace owns.
NOT_DISTRIBUTED = {"recollect_migrations"}

# Derived from passages, without text: reads join passages, and a policy would keep the planner from the GIN index.
# Of records there are only ids, and when each is over.
DERIVED = {"passage_words", "passage_vectors", "passage_queue", "term_stats", "record_expiries"}

# A key or token names its namespace, so it is looked up before one is known; it holds a hash and no content.
BEFORE_NAMESPACE = {"api_keys", "key_grants", "connections", "connection_tokens"}

# The statements that look across namespaces, and see only their names, their keys' hashes and labels, and grants.
ACROSS_NAMESPACES = {
    "passages.namespaces_with_work",
    "passages.namespaces_with_expired",
    "passages.waiting_anywhere",
    "keyed_records.namespaces_with_expired",
    "access.find",
    "access.find_browser",
    "access.any_guards",
    "access.elsewhere",
    "connections.find",
    "grants.readers",
    "grants.held",
    "grants.copy",
    "grants.remove_held",
}

PACKAGE = Path(recollect.__file__).parent
STATEMENTS = {
    f"{path.stem}.{name}": text
    for path in sorted(PACKAGE.rglob("*.sql"))
    if path.parent.name != "migrations"
    for name, text in read_blocks(path).items()
}
MIGRATIONS = {path.name: path.read_text() for path in sorted((PACKAGE / "storage" / "migrations").glob("*.sql"))}

# The last migration that makes a function has the one in force.
FUNCTIONS = {
    name: body
    for text in MIGRATIONS.values()
    for name, body in re.findall(r"^create (?:or replace )?function (\w+)\(.*?\$\$(.*?)\$\$;", text, re.M | re.S)
}
# Writes to shards by their names, each found by the namespace; tests/storage/test_citus.py sees what it writes.
ON_WORKER = "append_messages_on_worker"
# A call of one of ours, which is handed the namespace first.
CALL = re.compile(rf"^\s*select\b[^;]*?\bfrom (?:{'|'.join([*FUNCTIONS, ON_WORKER])})\(\s*:namespace,", re.S)

TABLE_REFERENCE = re.compile(
    r"\b(?:from|join|update)\s+(\w+)(?:\s+as)?"
    r"(?:\s+(?!(?:set|where|on|join|left|cross|inner|order|group|limit|union|returning|for)\b)(\w+))?"
)


def without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*", "", sql)


async def tables(engine: Engine) -> set[str]:
    async with engine.database.unscoped() as connection:
        rows = await connection.fetch(
            "select relname from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace "
            "and relname !~ '_[0-9]{6}$'"  # the shards of a cluster
        )
    found = {row["relname"] for row in rows}
    assert found > NOT_DISTRIBUTED | DERIVED | BEFORE_NAMESPACE
    return found - NOT_DISTRIBUTED


async def test_every_table_starts_with_namespace_and_has_a_primary_key(engine: Engine) -> None:
    async with engine.database.unscoped() as connection:
        for table in await tables(engine):
            first = await connection.fetchval(
                "select attname from pg_attribute where attrelid = $1::text::regclass and attnum = 1", table
            )
            assert first == "namespace", table
            keys = await connection.fetchval(
                "select count(*) from pg_constraint where conrelid = $1::text::regclass and contype = 'p'", table
            )
            assert keys == 1, f"{table} has no primary key"


async def test_every_key_leads_with_namespace(engine: Engine) -> None:
    async with engine.database.unscoped() as connection:
        rows = await connection.fetch(
            """
            select c.relname as on_table, k.conname as name, a.attname as leads
            from pg_constraint k
            join pg_class c on c.oid = k.conrelid
            join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
            where k.contype in ('p', 'u', 'f') and c.relnamespace = 'public'::regnamespace
            union all
            select c.relname, i.relname, a.attname
            from pg_index x
            join pg_class c on c.oid = x.indrelid
            join pg_class i on i.oid = x.indexrelid
            join pg_attribute a on a.attrelid = x.indrelid and a.attnum = x.indkey[0]
            where x.indisunique and c.relnamespace = 'public'::regnamespace
            """
        )
    assert {row["on_table"] for row in rows} > await tables(engine)
    for row in rows:
        if row["on_table"] not in NOT_DISTRIBUTED:
            assert row["leads"] == "namespace", (row["on_table"], row["name"])


async def test_every_content_table_forces_row_level_security(engine: Engine) -> None:
    async with engine.database.unscoped() as connection:
        for table in await tables(engine) - DERIVED - BEFORE_NAMESPACE:
            row = await connection.fetchrow(
                "select relrowsecurity and relforcerowsecurity as forced from pg_class where oid = $1::text::regclass",
                table,
            )
            assert row is not None
            assert row["forced"], f"{table} has no forced policy"


async def test_every_statement_names_namespace_for_every_table_it_touches(engine: Engine) -> None:
    known = await tables(engine)
    assert STATEMENTS
    for name, text in STATEMENTS.items():
        if name in ACROSS_NAMESPACES:
            continue
        sql = without_comments(text)
        assert not re.search(r"\bfrom\s+\w+(?:\s+\w+)?\s*,\s*\w+|\busing\s*\(", sql), f"{name} joins without `on`"
        if not CALL.search(sql):
            check_namespace_of_every_table(name, sql, known, ":namespace")


async def test_every_function_names_namespace_for_every_table_it_touches(engine: Engine) -> None:
    known = await tables(engine)
    assert FUNCTIONS
    for name, body in FUNCTIONS.items():
        statements = [
            statement
            for statement in without_comments(body).split(";")
            if "insert into" in statement or any(table in known for table, _ in TABLE_REFERENCE.findall(statement))
        ]
        assert statements, f"{name} touches no table"
        for statement in statements:
            check_namespace_of_every_table(name, statement, known, "in_namespace")


def check_namespace_of_every_table(name: str, sql: str, known: set[str], namespace: str) -> None:
    touched = TABLE_REFERENCE.findall(sql)
    real = Counter(alias or table for table, alias in touched if table in known)
    assert real or "insert into" in sql, f"{name} touches no table"
    for alias, times in real.items():
        bound = len(re.findall(rf"\b{alias}\.namespace\s*=\s*{namespace}\b", sql))
        if sum(real.values()) == 1:
            bound += len(re.findall(rf"(?<![\w.])namespace\s*=\s*{namespace}\b", sql))
        else:
            bound += len(re.findall(rf"\bfrom {alias}\s+where namespace\s*=\s*{namespace}\b", sql))
        assert bound >= times, f"{name} reaches {alias} without namespace = {namespace}"
    for insert in re.findall(r"insert into \w+\s*\(([^)]*)\)", sql):
        assert insert.split(",")[0].strip() == "namespace", f"{name} does not insert namespace first"


def test_no_statement_uses_anything_that_citus_refuses() -> None:
    for name, text in STATEMENTS.items():
        check_for_what_citus_refuses(name, without_comments(text).lower())


def check_for_what_citus_refuses(name: str, sql: str) -> None:
    assert not re.search(r"\bmerge\b", sql), name
    assert "pg_advisory" not in sql, name
    for assignment in re.findall(r"do update\s+set(.*?)(?:where|returning|;|$)", sql, re.S):
        assert not re.search(r"\w+\s*\(", assignment), f"{name} calls a function in DO UPDATE SET"
    for values in re.findall(r"\bvalues\b(.*?)(?:on conflict|returning|;|$)", sql, re.S):
        assert "select" not in values, f"{name} has a subquery inside VALUES"
    for returned in re.findall(r"\breturning\b(.*?)(?:;|\)\s|$)", sql, re.S):
        assert not re.search(r"\b(now|clock_timestamp|random|gen_random_uuid)\s*\(", returned), name


async def test_no_rows_are_copied_into_a_table_with_a_policy(engine: Engine) -> None:
    """Citus copies the rows of an insert to a shard, unless it returns some or looks for conflicts; that is refused."""
    with_policy = await tables(engine) - DERIVED - BEFORE_NAMESPACE
    for name, text in [*STATEMENTS.items(), *FUNCTIONS.items()]:
        for statement in without_comments(text).split(";"):
            into = re.search(r"\binsert into (\w+)", statement)
            if into and into[1] in with_policy and re.search(r"\bselect\b", statement):
                assert re.search(r"\b(returning|on conflict)\b", statement), f"{name} copies into {into[1]}"


def test_no_migration_makes_a_restrictive_policy() -> None:
    """Citus makes a permissive one of it on its shards, and that opens what other policies close."""
    assert [name for name, text in MIGRATIONS.items() if "restrictive" in without_comments(text).lower()] == []


def test_no_migration_makes_a_trigger() -> None:
    assert MIGRATIONS
    assert [name for name, text in MIGRATIONS.items() if "trigger" in without_comments(text).lower()] == []


def test_no_violation_is_recognised_by_the_name_of_a_constraint() -> None:
    sources = list(PACKAGE.rglob("*.py"))
    assert sources
    assert [path.name for path in sources if "constraint_name" in path.read_text()] == []
