"""Named SQL fails at import on whatever does not match its declaration."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import recollect
from recollect.origin import Role
from recollect.storage.migrate import migrations
from recollect.storage.sql import role_for, statements

SQL = "-- add\n-- Adds.\nselect 1;\n\n-- find\n-- Finds.\nselect 2;\n"


def declare(tmp_path: Path, sql: str, *names: str) -> ModuleType:
    (tmp_path / "thing.sql").write_text(sql)
    source = "from recollect.storage.sql import Queries, Query\n\nclass Sql(Queries, file='thing.sql'):\n"
    source += "".join(f"    {name}: Query\n" for name in names)
    path = tmp_path / "thing.py"
    path.write_text(source)
    import importlib.util
    import sys

    spec = importlib.util.spec_from_file_location("thing_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["thing_under_test"] = module
    spec.loader.exec_module(module)
    return module


def test_a_declared_block_is_loaded_with_its_name_and_comment(tmp_path: Path) -> None:
    module = declare(tmp_path, SQL, "add", "find")
    assert module.Sql.add.name == "thing.add"
    assert module.Sql.add.text == "-- Adds.\nselect 1;"
    assert module.Sql.find.text == "-- Finds.\nselect 2;"


def test_an_unknown_block_fails_at_import(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="no block named remove"):
        declare(tmp_path, SQL, "add", "find", "remove")


def test_an_unused_block_fails_at_import(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="undeclared blocks: find"):
        declare(tmp_path, SQL, "add")


def test_a_block_that_stands_twice_fails_at_import(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="two blocks named add"):
        declare(tmp_path, SQL + "\n-- add\n-- Again.\nselect 3;\n", "add", "find")


def test_a_block_without_a_description_fails_at_import(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="does not say what it is for"):
        declare(tmp_path, "-- add\nselect 1;\n", "add")


def test_a_script_is_cut_where_its_statements_end() -> None:
    script = """
-- A comment; it ends nothing;
create table t (a text default 'x;''y');
create function f() returns text language plpgsql as $$
begin
    return 'a;b';
end
$$;
select 1; -- One.
"""
    assert [statement.strip().splitlines()[-1] for statement in statements(script)] == [
        "create table t (a text default 'x;''y');",
        "$$;",
        "select 1; -- One.",
    ]


def test_a_statement_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="no end: select 2"):
        statements("select 1;\nselect 2\n")


def test_no_migration_loses_anything_when_it_is_cut() -> None:
    assert migrations()
    for migration in migrations():
        assert "\n".join(statements(migration.text)) == migration.text.rstrip("\n"), migration.name


@pytest.mark.parametrize(
    ("role", "sql"),
    [
        ("read", "-- It does not delete from anything.\nselect updated_at from sessions for no key update"),
        ("write", "-- Adds.\ninsert into sessions (id) values ('update')"),
        ("write", "-- Changes.\nwith held as (select) UPDATE sessions set id = '1'"),
        ("write", "-- Calls.\nselect last from record_changes(1)"),
        ("admin", "-- Deletes.\ndelete\nfrom sessions"),
        ("admin", "-- Changes.\n-- Role admin: a content is gone for good.\nupdate sessions set title = null"),
        ("write", "-- Deletes.\n-- Role write: it is kept elsewhere.\ndelete from sessions"),
    ],
)
def test_a_statement_needs_the_role_for_what_it_does(role: Role, sql: str) -> None:
    assert role_for(sql) == role


def test_a_call_of_a_function_of_ours_needs_more_than_the_role_to_read() -> None:
    files = list(Path(recollect.__file__).parent.rglob("*.sql"))
    named = {name for file in files for name in re.findall(r"create or replace function (\w+)", file.read_text())}
    assert "append_messages" in named
    # What moves shards of a cluster is called by nothing of ours.
    assert {name for name in named if role_for(f"select * from {name}()") == "read"} == {"keep_shard_in_place"}
