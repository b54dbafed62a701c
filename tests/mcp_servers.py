"""Real MCP servers, and the SDK's real client, made synchronous: its loop runs in a thread of its own."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, TextResourceContents, Tool

from tests.commands import RECOLLECT

# What does not depend on how a server is reached is asked once.
ONE_TRANSPORT = pytest.mark.parametrize("mcp", ["http"], indirect=True)


SECONDS = 60


def environment(namespace: str) -> dict[str, str]:
    """The settings of a server in the test database."""
    cluster = os.environ.get("RECOLLECT_TEST_CITUS_URL")
    return {
        "RECOLLECT_DATA_DIR": os.environ["RECOLLECT_TEST_HOME"],
        "RECOLLECT_NAMESPACE": namespace,
    } | ({} if cluster is None else {"RECOLLECT_DATABASE_URL": cluster})


class McpClient:
    """What a test says to a server, and what it expects of every answer."""

    def __init__(self, portal: BlockingPortal, client: Client, namespace: str) -> None:
        self._portal = portal
        self.sdk = client
        self.namespace = namespace

    def do(self, work: Any, *values: Any) -> Any:
        """Any call of the SDK's client."""
        return self._portal.call(work, *values)

    def tools(self) -> dict[str, Tool]:
        """What the server offers, by name."""
        return {tool.name: tool for tool in self.do(self.sdk.list_tools).tools}

    def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        result: CallToolResult = self.do(self.sdk.call_tool, tool, arguments)
        return result

    def ok(self, tool: str, **arguments: Any) -> Any:
        """The contract's JSON of a call that succeeds: the text, which structured content repeats."""
        result = self.call(tool, arguments)
        assert not result.is_error, text_of(result)
        answer = json.loads(text_of(result))
        assert result.structured_content == ({"result": answer} if isinstance(answer, list) else answer)
        return answer

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused; it never shows how we are made."""
        result = self.call(tool, arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        text = text_of(result)
        assert "Traceback" not in text
        assert "pydantic" not in text.lower()
        return text

    def read(self, uri: str) -> Any:
        """The envelope of a resource."""
        result = self.do(self.sdk.read_resource, uri)
        (contents,) = result.contents
        assert isinstance(contents, TextResourceContents)
        assert (contents.uri, contents.mime_type) == (uri, "application/json")
        return json.loads(contents.text)

    def read_refused(self, uri: str) -> MCPError:
        """The error of a resource that cannot be read."""
        with pytest.raises(MCPError) as caught:
            self.read(uri)
        assert "Traceback" not in caught.value.message
        return caught.value


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def connected(target: Any, namespace: str, mode: str = "auto") -> Iterator[McpClient]:
    with start_blocking_portal() as portal:
        client = Client(target, mode=mode, read_timeout_seconds=SECONDS)
        with portal.wrap_async_context_manager(client):
            yield McpClient(portal, client, namespace)


@contextmanager
def over_stdio(namespace: str, log: TextIO, *arguments: str, mode: str = "auto") -> Iterator[McpClient]:
    parameters = StdioServerParameters(command=str(RECOLLECT), args=["mcp", *arguments], env=environment(namespace))
    with connected(stdio_client(parameters, log), namespace, mode) as client:
        yield client


@contextmanager
def serving(namespace: str, log: TextIO, *arguments: str) -> Iterator[str]:
    """The address of a running `recollect serve`."""
    command = [str(RECOLLECT), "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | environment(namespace)
    ) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/mcp", line)))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SECONDS)


@contextmanager
def reached(way: str, namespace: str, log: TextIO) -> Iterator[McpClient]:
    """A server reached over stdio, or over HTTP by a client of this or of the last revision."""
    with ExitStack() as stack:
        if way == "stdio":
            yield stack.enter_context(over_stdio(namespace, log))
            return
        url = stack.enter_context(serving(namespace, log))
        mode = "legacy" if way == "http-2025" else "auto"
        yield stack.enter_context(connected(url, namespace, mode))
