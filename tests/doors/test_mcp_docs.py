"""The configuration in docs/mcp.md starts real servers, and its tables are complete."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest

from recollect.doors.mcp import toolsets
from recollect.doors.mcp.route import PATH
from recollect.engine import Engine
from recollect.settings import Settings
from recollect.storage import embedded
from tests.commands import RECOLLECT
from tests.mcp_servers import over_stdio, serving

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
BLOCKS = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)]
SERVERS: list[dict[str, Any]] = [
    server for block in BLOCKS for server in (block.get("mcpServers") or block.get("servers") or {}).values()
]
COMMANDS = sorted(
    {(each["command"], *each["args"]) for each in SERVERS if "command" in each}
    | {tuple(shlex.split(line)) for line in re.findall(r"^claude mcp add \w+ -- (.+)$", PAGE, re.M)}
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_configured_command_starts_a_server(server: embedded.Lease, command: tuple[str, ...], tmp_path: Path) -> None:
    assert command[:2] == (RECOLLECT.name, "mcp")
    with (tmp_path / "log").open("w") as log, over_stdio("default", log, *command[2:]) as client:
        assert {"remember", "create_entities"} & client.tools().keys()


def test_a_configured_environment_is_made_of_settings() -> None:
    for server in SERVERS:
        for name in server.get("env", {}):
            assert name.removeprefix("RECOLLECT_").lower() in Settings.model_fields


def test_a_configured_address_is_where_serve_listens() -> None:
    address = f"http://{Settings().host}:{Settings().port}{PATH}"
    assert {each["url"] for each in SERVERS if "url" in each} == {address}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_a_configured_header_has_a_key_as_keys_create_makes_them(engine: Engine, namespace: str) -> None:
    (headers,) = [each["headers"] for each in SERVERS if "headers" in each]
    prefix = headers["Authorization"].removesuffix("...")
    assert prefix == "Bearer " + (await engine.access.create_key(namespace, None)).secret[:3]


def test_a_plain_request_is_answered(server: embedded.Lease, namespace: str, tmp_path: Path) -> None:
    remember, recall = [shlex.split(line) for line in re.findall(r"^curl .*$", PAGE, re.M)]
    with (tmp_path / "log").open("w") as log, serving(namespace, log) as url:
        for curl, expected in ((remember, "document:"), (recall, "The spare key is under the flowerpot.")):
            assert curl[2] == f"http://127.0.0.1:8000{PATH}"
            headers = dict([curl[4].split(": ")]) | {"Content-Type": "application/json"}
            answer = httpx.post(url, headers=headers, content=curl[6], timeout=60)
            assert expected in answer.text


def test_the_tables_have_every_tool_and_resource() -> None:
    for name in (definition.function.__name__ for definition in toolsets.definitions(toolsets.EVERY)):
        assert f"| `{name}` |" in PAGE
    for name in ("l2-insights", "working-memory", "episode-memory", "l0-raw", "stale-memory", "lineage", "changes"):
        assert f"| `memory://{name}` |" in PAGE


def test_the_example_of_an_error_is_what_the_tool_says(server: embedded.Lease, tmp_path: Path) -> None:
    (example,) = [block for block in BLOCKS if "error" in block]
    with (tmp_path / "log").open("w") as log, over_stdio("default", log) as client:
        assert json.loads(client.refused("hybrid_search", query_text="x", top_k=0)) == example
