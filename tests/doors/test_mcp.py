"""`recollect mcp` and the `/mcp` of `recollect serve`: what is offered, and who may reach it."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.storage import embedded
from tests.commands import RECOLLECT, recollect
from tests.contracts.schemas import COGNITIVE, CONTEXT
from tests.contracts.test_mcp_schemas import MEMORIES
from tests.mcp_servers import connected, environment, over_stdio, serving

CORE = ["remember", "recall", "forget"]
GOLDEN = ["add_golden_query", "list_golden_queries", "remove_golden_query", "accept_judgements"]
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "arguments": {}}}


def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return recollect(*arguments, env=os.environ | environment("default") | more)


@pytest.fixture(scope="module")
def url(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (tmp_path_factory.mktemp("mcp") / "log").open("w") as log, serving(f"test-{uuid4()}", log) as address:
        yield address


def test_describe_tells_the_tools_and_what_they_cost(server: embedded.Lease) -> None:
    result = run("mcp", "--describe")
    assert result.returncode == 0
    costs = dict(re.findall(r"^(\w+): \d+ tools, about ([\d,]+) tokens$", result.stdout, re.M))
    assert list(costs) == ["core", "context", "cognitive", "golden", "working", "memories"]
    assert int(costs["core"].replace(",", "")) < 1100
    for name in [*CORE, *CONTEXT, *COGNITIVE, *GOLDEN, "archive_working_memory", *MEMORIES]:
        assert re.search(rf"^  {name} +\w", result.stdout, re.M)


def test_describe_tells_of_the_chosen_toolsets_alone(server: embedded.Lease) -> None:
    result = run("mcp", "--describe", "--toolsets", "core")
    assert re.findall(r"^(\w+):", result.stdout, re.M) == ["core"]
    assert re.findall(r"^  (\w+)", result.stdout, re.M) == CORE
    wrong = run("mcp", "--describe", "--toolsets", "cor")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Unknown toolset 'cor'" in wrong.stderr


@pytest.mark.parametrize(
    ("toolsets", "tools"),
    [
        ("core", CORE),
        ("context", list(CONTEXT)),
        ("cognitive", list(COGNITIVE)),
        ("golden", GOLDEN),
        ("working", ["archive_working_memory"]),
        ("memories", MEMORIES),
        (" context , core", [*CORE, *CONTEXT]),
    ],
)
def test_toolsets_choose_the_tools(server: embedded.Lease, tmp_path: Path, toolsets: str, tools: list[str]) -> None:
    with (tmp_path / "log").open("w") as log, over_stdio("default", log, "--toolsets", toolsets) as client:
        assert list(client.tools()) == tools
        listed = client.do(client.sdk.list_resources).resources
        assert len(listed) == (7 if toolsets == "cognitive" else 2)
        assert client.read("memory://changes?limit=1")["resource"] == listed[-1].uri
        if toolsets != "cognitive":
            assert "Unknown resource" in client.read_refused("memory://working-memory").message


@pytest.mark.parametrize(("command", "toolsets"), [("mcp", "everything"), ("mcp", "core,"), ("serve", "Core")])
def test_an_unknown_toolset_is_one_sentence(server: embedded.Lease, command: str, toolsets: str) -> None:
    result = run(command, "--toolsets", toolsets)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "choose from core, context, cognitive" in result.stderr
    assert "Traceback" not in result.stderr


def test_serve_takes_toolsets_too(server: embedded.Lease, namespace: str, tmp_path: Path) -> None:
    with (
        (tmp_path / "log").open("w") as log,
        serving(namespace, log, "--toolsets", "core") as url,
        connected(url, namespace) as client,
    ):
        assert list(client.tools()) == CORE


def test_standard_output_is_the_protocols_alone(server: embedded.Lease) -> None:
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    chosen = os.environ | environment("default") | {"RECOLLECT_LOG_LEVEL": "DEBUG"}
    pipe = subprocess.PIPE
    with subprocess.Popen([RECOLLECT, "mcp"], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=chosen) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["jsonrpc"] == "2.0"
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest == ""
    assert "debug" in errors


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_it_while_it_waits_for_input(server: embedded.Lease, stop: signal.Signals) -> None:
    with subprocess.Popen(
        [RECOLLECT, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | environment("default"),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert b"result" in process.stdout.readline()
        process.send_signal(stop)
        assert process.wait(30) == -stop


def test_a_server_that_cannot_reach_its_database_says_so_and_exits_with_one(tmp_path: Path) -> None:
    result = run("mcp", RECOLLECT_DATABASE_URL=f"postgresql://me:hunter2@/db?host={tmp_path}")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "cannot be reached" in result.stderr
    assert "hunter2" not in result.stderr
    assert "Traceback" not in result.stderr


def test_whoever_opens_the_address_by_hand_is_told_what_it_is(url: str) -> None:
    answer = httpx.get(url, headers={"Accept": "*/*"}, timeout=60)
    assert answer.status_code == 406
    assert "for MCP clients" in answer.json()["detail"]


def test_rest_and_mcp_share_a_port(url: str) -> None:
    assert httpx.get(url.replace("/mcp", "/health"), timeout=60).json() == {"status": "ok"}
    assert "pong" in httpx.post(url, json=PING, headers=HEADERS, timeout=60).text
    assert httpx.get(url.replace("/mcp", "/nothing"), timeout=60).json() == {"detail": "Not Found"}


@pytest.mark.parametrize("host", ["evil.example.com", "127.0.0.1.evil.example.com", "localhost.evil.com:80", "[::2]"])
def test_a_request_for_another_host_is_refused(url: str, host: str) -> None:
    answer = httpx.post(url, json=PING, headers=HEADERS | {"host": host}, timeout=60)
    assert answer.status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example.com", "https://localhost.evil.com", "null", "http://[::2]:80"])
def test_a_page_of_another_site_is_refused(url: str, origin: str) -> None:
    answer = httpx.post(url, json=PING, headers=HEADERS | {"origin": origin}, timeout=60)
    assert answer.status_code == 403


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "localhost:8000", "[::1]:8000"])
def test_loopback_goes_by_all_of_its_names(url: str, name: str) -> None:
    answer = httpx.post(url, json=PING, headers=HEADERS | {"host": name, "origin": f"http://{name}"}, timeout=60)
    assert answer.status_code == 200


def test_a_body_beyond_any_call_is_refused(url: str) -> None:
    address = httpx.URL(url)
    connection = http.client.HTTPConnection(address.host, address.port)
    connection.request("POST", address.path, headers=HEADERS | {"content-length": str(65 * 1024 * 1024)})
    assert connection.getresponse().status == 413
    connection.close()


def test_the_server_introduces_itself(server: embedded.Lease, url: str) -> None:
    for mode, revision in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
        with connected(url, "default", mode) as client:
            assert client.sdk.protocol_version == revision
            assert client.sdk.server_info is not None
            assert (client.sdk.server_info.name, client.sdk.server_info.version) == ("recollect", "0.2.0")
            assert "long-term memory" in (client.sdk.instructions or "")


def test_many_clients_at_once_are_served(url: str) -> None:
    async def burst(sdk: Any) -> list[Any]:
        return await asyncio.gather(*(sdk.call_tool("remember", {"text": f"note {n}"}) for n in range(50)))

    with connected(url, "default") as client:
        results = client.do(burst, client.sdk)
    assert len({result.structured_content["id"] for result in results}) == 50
