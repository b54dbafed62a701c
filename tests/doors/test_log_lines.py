"""One line a request through every door that serves, with who, where and how long, and nothing of what was said."""

import json
import logging
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from recollect.engine import Engine
from recollect.logs import NameRequest
from recollect.settings import Settings
from tests.commands import RECOLLECT
from tests.mcp_servers import connected, environment
from tests.rest_servers import listening

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


def requests(log: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines()]
    return [line for line in lines if line["logger"] == "recollect.requests"]


def test_each_mcp_request_over_stdio_is_a_line(settings: Settings, namespace: str, tmp_path: Path) -> None:
    env = environment(namespace) | {"RECOLLECT_LOG_FORMAT": "json"}
    parameters = StdioServerParameters(command=str(RECOLLECT), args=["mcp"], env=env)
    path = tmp_path / "log"
    with path.open("w") as log, connected(stdio_client(parameters, log), namespace) as client:
        client.ok("remember", text="marzipan")
        client.refused("forget", id="document:nougat")
        client.call("caramel", {"toffee": 1})
        client.read("memory://working-memory")
    text = path.read_text()
    lines = requests(text)
    calls = [(line["message"], line.get("tool")) for line in lines if line["message"].startswith("tools/call")]
    assert calls[:2] == [("tools/call ok", "remember"), ("tools/call refused", "forget")]
    assert calls[2][1] is None
    assert "resources/read ok" in {line["message"] for line in lines}
    assert {(line["namespace"], line["door"]) for line in lines} == {(namespace, "mcp")}
    assert all(float(line["ms"]) >= 0 for line in lines)
    assert len({line["request_id"] for line in lines}) == len(lines)
    for said in ("marzipan", "nougat", "caramel", "toffee"):
        assert said not in text


async def test_over_http_the_line_of_a_tool_has_the_id_of_its_request(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(NameRequest())
    caplog.set_level(logging.DEBUG, "recollect.requests")
    async with listening(engine) as url, Client(f"{url}/mcp") as client:
        assert not (await client.call_tool("remember", {"text": "marzipan"})).is_error
    lines = [line for line in caplog.records if line.name == "recollect.requests"]
    of_gate = {vars(line)["request_id"] for line in lines if line.levelno == logging.INFO}
    (of_tool,) = [vars(line) for line in lines if "tool" in vars(line)]
    assert (of_tool["levelno"], of_tool["tool"]) == (logging.DEBUG, "remember")
    assert of_tool["request_id"] in of_gate


def test_a_command_is_a_line_for_debug_alone(settings: Settings, namespace: str) -> None:
    def remember(what: str, level: str) -> str:
        env = os.environ | {"RECOLLECT_LOG_LEVEL": level, "RECOLLECT_LOG_FORMAT": "json"}
        result = subprocess.run([RECOLLECT, "remember", what], capture_output=True, text=True, timeout=60, env=env)
        assert result.returncode == 0, result.stderr
        return result.stderr

    assert remember("nougat", "info") == ""
    log = remember("marzipan", "debug")
    (line,) = requests(log)
    assert (line["message"], line["door"], line["namespace"]) == ("recollect remember", "cli", namespace)
    assert line["request_id"]
    assert "marzipan" not in log
