"""`recollect status`, run as an operator and as a monitor runs it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.engine import Engine
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.settings import Settings
from recollect.storage import migrate
from recollect.storage.database import Database
from recollect.storage.embedded import Lease
from recollect.tasks import in_thread
from tests.commands import recollect
from tests.flows.talk import say_all
from tests.storage.databases import empty_database, url

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return recollect("status", *arguments, env=os.environ | environment)


def fields(document: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields of a document as the page names them: what stands for a kind, a period or a feature in capitals."""
    names: dict[tuple[str, ...], str] = {("memory",): "KIND", ("messages",): "PERIOD", ("llm", "features"): "FEATURE"}
    # What was held or masked is empty here.
    if not isinstance(document, dict) or (path and path[0] == "defence" and not document):
        yield ".".join(path)
        return
    for name, value in document.items():
        yield from fields(value, (*path, names.get(path, str(name))))


@pytest.mark.unindexed("it counts what waits")
async def test_people_get_a_table_and_machines_the_fields_of_the_page(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "The ferry leaves at nine.", "We sold the boat.")
    purpose = Purpose(namespace, "judges", "openai:gpt-4o")
    await engine.spending.settle(await engine.spending.reserve(purpose, 2000), Tokens(1200, 34))
    await engine.access.create_key(namespace)
    await engine.recall.recall(namespace, "When does the ferry leave?")
    await engine.activity.flush()
    table = await in_thread(run)
    assert table.returncode == 0, table.stderr
    shown = {line[:14].strip(): line[14:].strip() for line in table.stdout.splitlines()}
    assert re.fullmatch(r"2   about [\d.]+ [kM]B", shown["messages"])
    assert shown["new messages"] == "2 in the last minute, 2 in the last hour, 2 in the last day"
    assert shown["last 24 hours"] == "1 write(s), 1 recall(s), 0 degraded, 0 failed"
    assert shown["indexer"].startswith("2 passage(s) waiting to be embedded, the oldest for ")
    assert shown["LLM budget"] == "1,234 of 1,000,000 tokens today (UTC), judges 1,234"
    assert shown["keys"] == "1 of the namespace, 0 of gateway users"
    assert table.stdout.endswith("Nothing needs attention.\n")
    answer = await in_thread(run, "--json")
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert (document["namespace"], document["memory"]["messages"]["rows"]) == (namespace, 2)
    assert [set(hour) for hour in document["activity"]] == [{"start", "writes", "recalls", "degraded", "failed"}] * 48
    section = OPERATIONS.read_text().partition("\n## Status\n")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `([\w.]+)` \|", section, re.M)
    assert sorted(set(fields(document))) == sorted(described)


@pytest.mark.unindexed("it counts what waits")
async def test_what_needs_attention_is_a_sentence_and_the_exit_code(engine: Engine, namespace: str) -> None:
    await say_all(engine, namespace, "ann", "The ferry leaves at nine.")
    async with engine.database.transaction(namespace) as tx:
        await tx._connection.execute(
            "update passage_queue set queued_at = now() - interval '1 day' where namespace = $1", namespace
        )
    table = await in_thread(run)
    assert table.returncode == 1
    assert "ATTENTION" in table.stdout
    assert "the oldest for 1,440 minutes" in table.stdout
    answer = await in_thread(run, "--json")
    assert answer.returncode == 1
    assert "The indexer is behind" in json.loads(answer.stdout)["attention"][0]


async def test_a_schema_that_is_behind_is_said_and_left_as_it_is(
    server: Lease, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    *known, newest = migrate.migrations()
    async with empty_database(server) as name:
        address = url(server.connection, name)
        database = await Database.open({"dsn": address})
        monkeypatch.setattr(migrate, "migrations", lambda: known)
        await migrate.migrate(database)
        monkeypatch.undo()
        answer = await in_thread(run, "--json", RECOLLECT_DATABASE_URL=address, RECOLLECT_NAMESPACE=settings.namespace)
        assert answer.returncode == 1, answer.stderr
        document = json.loads(answer.stdout)
        assert document["schema"] == {"applied": known[-1].version, "known": newest.version}
        assert "`recollect migrate`" in document["attention"][0]
        assert await migrate.pending(database) == (newest,)
        await database.close()


async def test_a_new_database_is_set_up_by_the_first_look_at_it(server: Lease, settings: Settings) -> None:
    async with empty_database(server) as name:
        answer = await in_thread(run, RECOLLECT_DATABASE_URL=url(server.connection, name))
    assert answer.returncode == 0, answer.stderr
    assert "Nothing needs attention." in answer.stdout


def test_a_database_that_does_not_answer_is_one_sentence(settings: Settings) -> None:
    answer = run(RECOLLECT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("recollect: The database cannot be reached")
