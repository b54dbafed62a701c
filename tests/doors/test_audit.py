"""Every door writes the audit log before it answers; an answer whose line cannot be stored does not leave."""

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from recollect import ContextService, MemoryManager
from recollect.doors.rest import in_process
from recollect.engine import Engine
from recollect.flows.jobs.long_work import PruneTerms
from recollect.origin import Limits, Touched, acting
from recollect.settings import Settings
from recollect.storage.sql import Query
from recollect.tasks import in_thread
from tests.commands import RECOLLECT, recollect
from tests.console_visits import another_browser, words
from tests.ended_jobs import ended
from tests.mcp_servers import connected, environment
from tests.rest_servers import listening, serving
from tests.waiting import DEADLINE_SECONDS, POLL_SECONDS

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

SAID = "The marzipan is in the cellar."

ALTERED = Query.named(
    "test.altered", "update audit_lines set author = 'nobody' where namespace = :namespace and number = 2"
)

# As a line of somebody who does not know how lines are chained.
INSERTED = Query.named(
    "test.inserted",
    """
    insert into audit_lines (namespace, number, at, author, door, action, outcome, touched, hash)
    select namespace, number + 1, at, 'nobody', 'cli', 'recall', 'done', '[]', hash
    from audit_heads where namespace = :namespace
    """,
)

# Every write takes this lock last, so a commit waits for whoever holds it.
COMMITS_HELD_UP = Query.named(
    "test.held_up", "select last from change_counters where namespace = :namespace for update"
)
IN_THE_WAY = Query.named(
    "test.audit.in_the_way",
    "select exists (select 1 from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid))), :namespace",
)


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("RECOLLECT_AUDIT", "all")
    return settings.model_copy(update={"audit": "all"})


async def told(engine: Engine, namespace: str) -> list[tuple[str, str, str | None, str, dict[str, list[str]]]]:
    """Door, action, author, outcome and what was touched, the oldest first."""
    lines = (await engine.audit_trail.page(namespace, limit=1000)).lines[::-1]
    return [
        (
            line.entry.door,
            line.entry.action,
            line.entry.author,
            line.entry.outcome,
            {f"{each['event']} {each['kind']}": each["ids"] for each in line.entry.touched},
        )
        for line in lines
    ]


async def test_rest_the_gateway_mcp_and_the_console_have_a_line_for_each_request(
    engine: Engine, namespace: str
) -> None:
    key = await engine.access.create_key(namespace, "kitchen")
    reader = await engine.access.create_key(namespace, "guest", "read")
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        http.headers["Authorization"] = f"Bearer {key.secret}"
        said = {"messages": [{"role": "user", "content": SAID}]}
        await http.post("/stm/talk/messages", json=said)
        message = (await http.get("/stm/talk/messages")).json()["messages"][0]
        found = (await http.post("/recall", json={"query": "Where is the marzipan?"})).json()["memories"]
        refused = await http.delete("/stm/talk", headers={"Authorization": f"Bearer {reader.secret}"})
        assert refused.status_code == 403
        await http.get("/nothing-here")
        user_key = (await http.post("/users", json={"user_id": "anna"})).json()["user_key"]
        who = {"user_id": "anna", "user_key": user_key}
        chat = [{"sender_id": "anna", "role": "user", "timestamp": 1_700_000_000_000, "content": "Nougat is gone."}]
        added = await http.post("/memories/add", json={"session_id": "chat:1", "messages": chat, **who}, headers={})
        assert added.is_success, added.text
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        for name, arguments in (("recall", {"query": "marzipan"}), ("forget", {"id": "document:x"}), ("caramel", {})):
            accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
            asked = {**call, "params": {"name": name, "arguments": arguments}}
            assert (await http.post("/mcp", json=asked, headers=accept)).status_code == 200
        unknown = call | {"method": "resources/read", "params": {"uri": "memory://nothing"}}
        assert "Unknown resource" in (await http.post("/mcp", json=unknown, headers=accept)).text
        async with another_browser(url) as browser:
            await browser.sign_in(key.secret)
            assert "marzipan" in await browser.text("/console/session?id=talk")
        lines = await told(engine, namespace)
        assert (await engine.audit_trail.verify(namespace)).fault is None
    (message_id,) = (each["id"] for each in found)
    assert message["content"] == SAID
    assert lines[:4] == [
        ("rest", "POST /stm/{session_id}/messages", "kitchen", "done", {"add message": [message_id]}),
        ("rest", "GET /stm/{session_id}/messages", "kitchen", "done", {"read message": [message_id]}),
        ("rest", "POST /recall", "kitchen", "done", {"read message": [message_id]}),
        ("rest", "DELETE /stm/{session_id}", "guest", "refused", {}),
    ]
    assert [each[:4] for each in lines[4:10]] == [
        ("rest", "POST /users", "kitchen", "done"),
        ("gateway", "POST /memories/add", "anna", "done"),
        ("mcp", "recall", "kitchen", "done"),
        ("mcp", "forget", "kitchen", "refused"),
        ("mcp", "_OTHER", "kitchen", "refused"),
        ("mcp", "_OTHER", "kitchen", "refused"),
    ]
    assert message_id in lines[6][4]["read message"]
    shown = next(each for each in lines if each[1] == "GET /console/session")
    assert shown[0] == "console"
    assert message_id in shown[4]["read message"]
    assert not any(word in json.dumps(lines) for word in ("cellar", "Nougat", "caramel", "Where is"))


async def test_a_crash_has_a_line(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await engine.access.create_key(namespace, "kitchen")
    monkeypatch.delattr(engine, "lineage")
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        answer = await http.get("/lineage/x", headers={"Authorization": f"Bearer {key.secret}"})
        assert answer.status_code == 500
        monkeypatch.delattr(engine, "recall")
        headers = {"Authorization": f"Bearer {key.secret}", "Accept": "application/json, text/event-stream"}
        for query in ("tea", ""):
            asked = {"name": "recall", "arguments": {"query": query}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
            assert '"isError":true' in (await http.post("/mcp", json=call, headers=headers)).text
        assert await told(engine, namespace) == [
            ("rest", "GET /lineage/{name}", "kitchen", "failed", {}),
            ("mcp", "recall", "kitchen", "failed", {}),
            ("mcp", "recall", "kitchen", "refused", {}),
        ]


async def test_a_line_that_stands_in_the_way_is_found_before_it_stops_the_command(
    engine: Engine, namespace: str
) -> None:
    await in_thread(recollect, "remember", SAID, env=dict(os.environ))
    async with engine.database.transaction(namespace) as tx:
        await tx.all(INSERTED)
    found = await in_thread(recollect, "audit", "verify", env=dict(os.environ))
    assert found.returncode == 1
    assert f"The audit log of namespace {namespace} was altered. First wrong line: 2." in found.stdout


async def test_the_library_and_its_synchronous_and_in_process_forms_have_lines(
    settings: Settings, namespace: str
) -> None:
    async with MemoryManager(settings) as memory:
        document = str(await memory.store_document(SAID))
        await memory.recall("Where is the marzipan?")
        exported = [line async for line in memory.export()]
        assert any(document in line for line in exported)
    async with (
        in_process.transport(settings, None) as transport,
        httpx.AsyncClient(transport=transport, base_url="http://memory") as http,
    ):
        assert (await http.post("/recall", json={"query": "marzipan"})).status_code == 200
    created = await in_thread(ContextService.create_conversation, "anna")
    await in_thread(ContextService.close)
    engine = await Engine.open(settings)
    lines = [each for each in await told(engine, namespace) if each[4] or each[1] == "export"]
    await engine.close()
    assert lines == [
        ("library", "store_document", None, "done", {"add document": [document]}),
        ("library", "recall", None, "done", {"read document": [document]}),
        ("library", "export", None, "done", {}),
        ("library", "export", None, "done", {"read document": [document]}),
        ("library", "POST /recall", None, "done", {"read document": [document]}),
        ("library", "create_conversation", None, "done", {"change session": [created["id"]]}),
    ]


async def test_mcp_over_stdio_has_lines(settings: Settings, namespace: str) -> None:
    env = environment(namespace) | {"RECOLLECT_AUDIT": "all"}

    def use() -> Any:
        with connected(
            stdio_client(StdioServerParameters(command=str(RECOLLECT), args=["mcp"], env=env)), namespace
        ) as client:
            document = client.ok("remember", text=SAID)["id"]
            client.refused("forget", id="document:nougat")
            client.read("memory://l2-insights")
            return document

    document = (await in_thread(use)).partition(":")[2]
    engine = await Engine.open(settings)
    lines = await told(engine, namespace)
    await engine.close()
    assert lines == [
        ("mcp", "remember", None, "done", {"add document": [document]}),
        ("mcp", "forget", None, "refused", {}),
        ("mcp", "memory://l2-insights", None, "done", {}),
    ]


async def test_a_stream_and_a_job_have_lines_of_their_own(engine: Engine, namespace: str) -> None:
    async with serving(engine) as http:
        document = str(await engine.remember.document(namespace, SAID, None, None))
        async with http.stream("GET", "/changes", headers={"Accept": "text/event-stream"}) as stream:
            async for line in stream.aiter_lines():
                assert line == "id: 1"
                break
            (shown,) = await told(engine, namespace)
        assert shown == ("rest", "GET /changes", None, "done", {"read document": [document]})
        with acting("console", "support desk"):
            await ended(engine, namespace, await engine.long_work.prune(namespace, PruneTerms(1), dry_run=True))
        assert (await told(engine, namespace))[-1][:4] == ("console", "job prune", "support desk", "done")


async def test_without_its_line_no_answer_leaves_any_door(engine: Engine, namespace: str) -> None:
    await engine.remember.document(namespace, SAID, None, None)
    async with serving(engine) as http, another_browser(str(http.base_url)) as browser:
        await engine.audit.close()
        answer = await http.post("/recall", json={"query": "marzipan"})
        assert answer.status_code == 503
        assert "The audit log could not be written" in answer.json()["detail"]
        page = await browser.open("/console/watch")
        assert page.status_code == 503
        assert "The audit log could not be written" in page.text
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        asked = {**call, "params": {"name": "recall", "arguments": {"query": "marzipan"}}}
        accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        tool = await http.post("/mcp", json=asked, headers=accept)
        async with http.stream("GET", "/changes", headers={"Accept": "text/event-stream"}) as stream:
            with pytest.raises(httpx.RemoteProtocolError):
                await stream.aread()
        for text in (answer.text, page.text, tool.text):
            assert "cellar" not in text
        assert "error" in tool.text


async def test_a_refused_operation_lists_its_items_as_attempted(engine: Engine, namespace: str) -> None:
    touched = Touched()
    touched.note(namespace, "delete", "key", ["k1"])
    await engine.audit.record(namespace, "keys revoke", "refused", touched)
    listed = await in_thread(recollect, "audit", "list", env=os.environ | {"RECOLLECT_AUDIT": "off"})
    assert "attempted: delete key (1): k1" in listed.stdout
    assert "Not recorded: RECOLLECT_AUDIT is off in this shell." in listed.stderr
    async with serving(engine) as http, another_browser(str(http.base_url)) as browser:
        assert "attempted: delete key k1" in words(await browser.text("/console/audit"))


async def test_the_command_line_lists_exports_verifies_and_prunes(
    engine: Engine, namespace: str, tmp_path: Path
) -> None:
    def run(*arguments: object) -> tuple[int, str]:
        done = recollect("audit", *arguments, env=dict(os.environ))
        return done.returncode, done.stdout + done.stderr

    off = await in_thread(recollect, "audit", "verify", env=os.environ | {"RECOLLECT_AUDIT": "off"})
    assert off.stdout == f"The audit log of namespace {namespace} is empty: nothing was ever recorded.\n"
    remembered = await in_thread(recollect, "remember", SAID, env=dict(os.environ))
    item = f"document:{remembered.stdout.strip()}"
    file, again = tmp_path / "audit.jsonl", tmp_path / "later.jsonl"
    assert await in_thread(run, "export", file) == (0, f"Wrote 1 line(s) to {file}.\n")
    code, listed = await in_thread(run, "list", "--item", item)
    assert code == 0
    assert re.search(r"^     1  .*  done     cli  remember  by no key$", listed, re.M), listed
    code, verdict = await in_thread(run, "verify", "--against", file)
    assert (code, verdict.startswith(f"Verified 3 line(s) of namespace {namespace}")) == (0, True)
    async with engine.database.transaction(namespace) as tx:
        await tx.all(ALTERED)
    code, verdict = await in_thread(run, "verify")
    assert code == 1
    assert "First wrong line: 2." in verdict
    assert "cellar" not in file.read_text() + listed
    code, refused = await in_thread(run, "prune", "--before", "2999-01-01")
    assert (code, "Use --yes to delete" in refused) == (2, True)
    assert await in_thread(run, "prune", "--before", "2999-01-01", "--dry-run") == (0, "6 line(s) would be deleted.\n")
    code, pruned = await in_thread(run, "prune", "--before", "2999-01-01", "--yes")
    assert (code, pruned) == (0, "Deleted 7 line(s) of the audit log.\n")
    assert (await in_thread(run, "verify"))[0] == 0
    code, listed = await in_thread(run, "list", "--action", "audit prune", "--json")
    assert json.loads(listed)["lines"][-1]["touched"][0]["count"] == 7
    assert (await in_thread(run, "export", again))[0] == 0


MISSPELT = [
    ("door", "web", "door must be one of rest, gateway, mcp, console, cli, library, not 'web'"),
    ("item", "foo", "item must be KIND or KIND:ID, and KIND must be one of audit, checkpoint, connection"),
    ("item", "memories:1", "not 'memories'"),
    ("item", ":1", "item must be KIND or KIND:ID"),
]


async def test_a_filter_that_no_line_can_match_is_refused(engine: Engine, namespace: str) -> None:
    key = await engine.access.create_key(namespace, "kitchen")
    async with serving(engine) as http:
        http.headers["Authorization"] = f"Bearer {key.secret}"
        for name, value, sentence in MISSPELT:
            done = await in_thread(recollect, "audit", "list", f"--{name}", value)
            assert (done.returncode, done.stdout) == (2, "")
            assert sentence in done.stderr
            refused = await http.get("/audit", params={name: value})
            assert (refused.status_code, sentence in refused.json()["detail"]) == (422, True)
        for item in ("memory", "key:1", "audit"):
            assert (await http.get("/audit", params={"item": item, "door": "gateway"})).status_code == 200


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait for something that a request does when nobody waits for its answer any more."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await condition():
            await asyncio.sleep(POLL_SECONDS)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("user", [None, "anna"])
async def test_a_client_that_hangs_up_during_the_commit_keeps_nothing_out_of_the_log(
    engine: Engine, namespace: str, caplog: pytest.LogCaptureFixture, mode: Any, user: str | None
) -> None:
    talk = (await engine.conversations.create(namespace, "anna", None)).id
    await engine.remember.text(namespace, SAID)
    key = await engine.access.create_key(namespace, "kitchen", "write", limits=Limits(user))
    said = {"conversation_id": talk, "user_message": "Where is it?", "assistant_response": "In the cellar."}

    async def hangs_up() -> bool:
        return any("POST /mcp no answer" in record.getMessage() for record in caplog.records)

    async def is_told() -> bool:
        return bool(await told(engine, namespace))

    caplog.set_level(logging.INFO, "recollect.requests")
    async with listening(engine) as url:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {key.secret}"}, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
            engine.database.transaction(namespace) as tx,
        ):
            await tx.all(COMMITS_HELD_UP)
            call = asyncio.create_task(client.call_tool("record_interaction", said))

            async def is_held_up() -> bool:
                return bool((await tx.one(IN_THE_WAY))["exists"])

            await eventually(is_held_up)
            call.cancel()
            await asyncio.wait([call])
            if mode == "auto":
                await eventually(hangs_up)
        await eventually(is_told)
        ((door, action, author, _, touched),) = await told(engine, namespace)
        stored = [str(message.id) for message in (await engine.conversations.history(namespace, talk, 10)).messages]
    assert len(stored) == 2
    assert (door, action, author, touched) == ("mcp", "record_interaction", "kitchen", {"add message": stored})


async def test_a_program_that_gives_up_during_the_commit_keeps_nothing_out_of_the_log(
    engine: Engine, settings: Settings, namespace: str
) -> None:
    await engine.remember.text(namespace, SAID)
    async with MemoryManager(settings) as memory:
        async with engine.database.transaction(namespace) as tx:
            await tx.all(COMMITS_HELD_UP)
            call = asyncio.create_task(memory.store_message(uuid4(), "user", "Where is it?"))

            async def is_held_up() -> bool:
                return bool((await tx.one(IN_THE_WAY))["exists"])

            await eventually(is_held_up)
            call.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([call])
        ((*_, touched),) = [each for each in await told(engine, namespace) if each[1] == "store_message"]
    assert list(touched) == ["add message"]
    assert [change.change.kind for change in (await engine.feed.page(namespace)).entries] == ["document", "message"]
