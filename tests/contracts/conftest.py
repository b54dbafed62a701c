"""One server for each way of reaching it, shared by all tests of a process: each test has names of its own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from recollect.storage import embedded
from tests.mcp_servers import McpClient, reached


@pytest.fixture(scope="session", params=["stdio", "http", "http-2025"])
def mcp(
    server: embedded.Lease, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[McpClient]:
    """A client of a real server; the server must not have met anything unexpected by the end."""
    log = tmp_path_factory.mktemp("mcp") / "log"
    with log.open("w") as file, reached(request.param, f"test-{uuid4()}", file) as client:
        yield client
    assert "Traceback" not in log.read_text()


@pytest.fixture
def word() -> str:
    """A word that no other test uses."""
    return f"w{uuid4().hex}"
