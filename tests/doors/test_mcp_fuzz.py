"""Whatever a client sends, it gets an answer of the contract's shape, and the server goes on."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import MCPError

from recollect.storage import embedded
from tests.commands import RECOLLECT
from tests.contracts.schemas import COGNITIVE, CONTEXT
from tests.contracts.test_mcp_schemas import MEMORIES
from tests.mcp_servers import McpClient, environment, over_stdio, serving, text_of

TEXT_ERRORS = {*CONTEXT, "remember", "recall", "forget", *MEMORIES}
TOOLS = sorted(TEXT_ERRORS | COGNITIVE.keys())
ERRORS = {"Parameter validation failed", "Resource not found", "API key not configured"}

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
RESOURCES = {
    "l2-insights": ["query", "top_k", "fidelity_min", "created_after", "created_before"],
    "working-memory": [],
    "episode-memory": ["query", "top_k", "min_similarity", "reward_min", "days_back"],
    "l0-raw": ["session_id", "date_range", "speaker", "limit", "order"],
    "changes": ["since", "limit"],
    "lineage": ["id"],
    "stale-memory": ["reason", "days_back", "importance_min", "limit"],
}


@pytest.fixture(scope="module")
def client(server: embedded.Lease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    log = tmp_path_factory.mktemp("mcp") / "log"
    with log.open("w") as file, over_stdio(f"test-{uuid4()}", file) as client:
        yield client
        assert client.ok("ping")["status"] == "ok"
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def schemas(client: McpClient) -> dict[str, Any]:
    return {name: tool.input_schema for name, tool in client.tools().items()}


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema."""
    match schema["type"]:
        case "string":
            return st.text(min_size=schema.get("minLength", 0))
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
        case "array" if schema.get("minItems", 0) > 100:
            return st.just([0.5] * 384 + [0.0] * (schema["minItems"] - 384))
        case "array":
            return st.lists(fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=5)
        case _ if "properties" in schema:
            return arguments(schema, fitting)
        case _:
            return st.dictionaries(st.text(), ANY_JSON, max_size=3)


def anything(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    return fitting(schema) | ANY_JSON


def arguments(schema: dict[str, Any], value: Any) -> st.SearchStrategy[dict[str, Any]]:
    required = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: value(each) for name, each in schema["properties"].items() if name in required},
        optional={name: value(each) for name, each in schema["properties"].items() if name not in required},
    )


def check(client: McpClient, tool: str, given: dict[str, Any]) -> None:
    """The client has checked the structured content against the output schema already."""
    result = client.call(tool, given)
    text = text_of(result)
    if not result.is_error:
        assert json.loads(text) in (result.structured_content, (result.structured_content or {}).get("result"))
    elif tool in TEXT_ERRORS:
        assert text.startswith("Error: ")
        assert "unexpected error" not in text
    else:
        problem = json.loads(text)
        assert problem["tool"] == tool
        assert problem["error"] in ERRORS, problem


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_arguments_that_fit_the_schema_get_an_answer(
    client: McpClient, schemas: dict[str, Any], tool: str, data: st.DataObject
) -> None:
    check(client, tool, data.draw(arguments(schemas[tool], fitting)))


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_arguments_get_an_answer(
    client: McpClient, schemas: dict[str, Any], tool: str, data: st.DataObject
) -> None:
    named = data.draw(arguments(schemas[tool], anything))
    check(client, tool, named | data.draw(st.dictionaries(st.text(), ANY_JSON, max_size=1)))


@pytest.mark.parametrize("resource", RESOURCES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_address_gets_an_answer(client: McpClient, resource: str, data: st.DataObject) -> None:
    names = st.sampled_from([*RESOURCES[resource], "other"]) | st.text(max_size=5)
    values = st.sampled_from(["5", "0.5", "2025-01-01", "a b"]) | st.text(max_size=20)
    query = data.draw(st.lists(st.tuples(names, values), max_size=4))
    uri = f"memory://{resource}?" + "&".join(f"{name}={value}" for name, value in query)
    refusal = refused(client, uri)
    assert refusal is None or (refusal.code, refusal.data["error"]) == (-32602, "Resource not found")


def refused(client: McpClient, uri: str) -> MCPError | None:
    try:
        client.read(uri)
    except MCPError as problem:
        return problem
    return None


GARBAGE = [
    b"not json",
    b"\xff\xfe\x00",
    b"[" * 5000,
    b'{"jsonrpc": "2.0", "id": 1}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "words"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "arguments": {"a": "\\ud800"}}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "store_episode", "arguments": '
    b'{"query": "q", "reward": NaN, "reflection": "r"}}}',
    b"",
]


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


INITIALIZE = request(
    7,
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
)


PARSE_ERROR, INVALID_REQUEST = -32700, -32600

# Each line, and the id and the code of its answer; none for what nobody waits for.
ANSWERED: list[tuple[bytes, tuple[int | str | None, int] | None]] = [
    (b"not json", (None, PARSE_ERROR)),
    (b"\xff\xfe\x00", (None, PARSE_ERROR)),
    (b"[" * 5000, (None, PARSE_ERROR)),
    (b'{"jsonrpc": "2.0", "id": 20, "method": "ping", "params": {"a": "\\ud800"}}', (20, PARSE_ERROR)),
    (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', (None, PARSE_ERROR)),
    (b'[{"jsonrpc": "2.0", "id": 21, "method": "ping"}]', (None, INVALID_REQUEST)),
    (b"[]", (None, INVALID_REQUEST)),
    (b"5", (None, INVALID_REQUEST)),
    (b'{"jsonrpc": "2.0", "id": 22}', (22, INVALID_REQUEST)),
    (b'{"id": "own", "method": "ping"}', ("own", INVALID_REQUEST)),
    (b'{"jsonrpc": "2.0", "id": 23, "method": 5}', (23, INVALID_REQUEST)),
    (b'{"jsonrpc": "2.0", "id": 24, "result": 5}', None),
    (b" ", None),
]


def test_every_line_on_standard_input_is_answered_and_the_server_goes_on(server: embedded.Lease) -> None:
    lines = [line for line, _ in ANSWERED]
    said = b"\n".join([lines[0], INITIALIZE, *lines, *GARBAGE, request(8, "ping", {}), b""])
    settings_of_server = os.environ | environment(f"test-{uuid4()}")
    command = [str(RECOLLECT), "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=settings_of_server) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(said)
        process.stdin.flush()
        # Standard input stays open until the last answer is there: its end is the client's good-bye.
        answers: list[dict[str, Any]] = []
        while not {7, 8} <= {answer["id"] for answer in answers if "result" in answer}:
            line = process.stdout.readline()
            assert line, f"the server stopped after it had answered {answers}"
            answers.append(json.loads(line))
        rest, errors = process.communicate(timeout=60)
    refused = [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer]
    expected = [answer for _, answer in ANSWERED if answer is not None]
    # The messages among them have handlers, whose answers come when they are done.
    unread = [answer for answer in refused if answer[1] in (PARSE_ERROR, INVALID_REQUEST) and answer[0] != 1]
    assert unread[: len(expected) + 1] == [expected[0], *expected]
    assert process.returncode == 0
    assert b"Traceback" not in rest + errors


def test_garbage_over_http_is_refused_and_the_next_request_served(server: embedded.Lease, tmp_path: Any) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with (tmp_path / "log").open("w") as log, serving(f"test-{uuid4()}", log) as url:
        for body in GARBAGE:
            answer = httpx.post(url, content=body, headers=headers, timeout=60)
            assert answer.status_code < 500, (body, answer.text)
            assert "Traceback" not in answer.text
        ping = request(1, "tools/call", {"name": "ping", "arguments": {}})
        assert "pong" in httpx.post(url, content=ping, headers=headers, timeout=60).text
