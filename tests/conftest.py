"""One embedded server for the whole run, shared by every test process; a fresh namespace for every test."""

import asyncio
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

import asyncpg
import pytest

from recollect.doors.library.memory_manager import MemoryManager
from recollect.engine import Engine
from recollect.inference.embedding.local import LocalEmbedder
from recollect.settings import Settings
from recollect.storage import citus, embedded
from recollect.storage.database import Database
from recollect.storage.migrate import migrate
from tests.storage.databases import RawConnection, connect, empty_database, url
from tests.waiting import wait_until

T = TypeVar("T")

_HOME = "RECOLLECT_TEST_HOME"
# The tests' databases are on this Citus cluster instead: CONTRIBUTING.md says what it needs.
_CITUS = "RECOLLECT_TEST_CITUS_URL"
_LONGEST = (
    *("tests/linear/", "tests/programs/", "tests/durability/", "tests/doors/test_rest_fuzz.py"),
    *(f"tests/doors/console/test_{name}.py" for name in ("every_page", "hostile_text", "isolation", "graph")),
)


class _Cleaner:
    """Takes out of the queues what a test left there, over one connection for all tests of a process."""

    def __init__(self, lease: embedded.Lease) -> None:
        # The loops of tests run in the main thread.
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()
        self._connection = self._run(self._connect(lease))

    async def _connect(self, lease: embedded.Lease) -> RawConnection:
        address = os.environ.get(_CITUS)
        return await (connect(lease.connection) if address is None else asyncpg.connect(address))

    def leave_no_work(self, namespace: str) -> None:
        """Tests add to the name when they need a second namespace."""
        statement = "delete from passage_queue where starts_with(namespace, $1)"
        with suppress(asyncpg.UndefinedTableError):  # the test needed a server, but no tables
            self._run(self._connection.execute(statement, namespace))

    def close(self) -> None:
        """Let go of the server."""
        self._run(self._connection.close())
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._runner.run, work).result()


# Once one of this process's tests has asked for a server.
_CLEANER = pytest.StashKey[_Cleaner]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts its background jobs deaf to Ctrl-C, and every program of a test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in list(os.environ):
        if name.startswith(("RECOLLECT_", "OPENAI_", "ANTHROPIC_")) and name not in (_HOME, _CITUS):
            del os.environ[name]
    if not hasattr(config, "workerinput"):
        # Directly under the system's temporary directory, which any account can reach; pytest's own are private.
        os.environ[_HOME] = tempfile.mkdtemp(prefix="recollect-test-")
        config.pluginmanager.register(_Failures(config))


class _Failures:
    """Tells of each failure at once: a run that is ended from outside tells nothing at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
            terminal.write_line(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        home = Path(os.environ.pop(_HOME))
        wait_until(lambda: not (home / "data" / "postmaster.pid").exists(), "the test server stops")
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[embedded.Lease]:
    with embedded.start(Path(os.environ[_HOME])) as lease:
        cleaner = request.session.stash[_CLEANER] = _Cleaner(lease)
        yield lease
        cleaner.close()


@pytest.fixture(scope="session", autouse=True)
def model() -> Iterator[None]:
    """An open embedder for as long as the process lives: the engines of its tests share its network."""
    embedder = LocalEmbedder.locate()
    assert embedder is not None
    asyncio.run(embedder.load())
    yield
    embedder.close()


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A name of this test alone. What waits to be indexed at its end would keep the indexers from other tests."""
    name = f"test-{uuid4()}"
    yield name
    if (cleaner := request.session.stash.get(_CLEANER, None)) is not None:
        cleaner.leave_no_work(name)


@pytest.fixture(params=["session", "transaction"])
def pooling(request: pytest.FixtureRequest) -> Literal["session", "transaction"]:
    """Everything runs with connections of our own and as behind a transaction pooler."""
    return cast(Literal["session", "transaction"], request.param)


@contextmanager
def _another_database(server: embedded.Lease, name: str) -> Iterator[str]:
    if _CITUS in os.environ:
        yield _distributed(f"{os.environ[_CITUS]}_{name}")
        return
    with asyncio.Runner() as runner:
        database = empty_database(server)
        yield url(server.connection, runner.run(database.__aenter__()))
        runner.run(database.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def still_database(server: embedded.Lease) -> Iterator[str]:
    """The address of a database where no indexer of any test looks."""
    with _another_database(server, "still") as address:
        yield address


@pytest.fixture(scope="session")
def lone_database(server: embedded.Lease) -> Iterator[str]:
    """The address of a database that one test uses at a time, so that its indexer meets no other."""
    with _another_database(server, "lone") as address:
        yield address


@cache
def _distributed(address: str) -> str:
    """A database of the cluster, with its tables on the workers."""

    async def distribute() -> None:
        database = await Database.open({"dsn": address})
        await migrate(database)
        await citus.distribute(database, citus.SHARDS, lambda table: None)
        await database.close()

    with asyncio.Runner() as runner:
        runner.run(distribute())
    return address


@pytest.fixture
def settings(
    request: pytest.FixtureRequest,
    server: embedded.Lease,
    namespace: str,
    pooling: Literal["session", "transaction"],
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """The settings of this test, in the environment too, for child processes and for doors that read it.

    They are those that ship, indexer included, and it works for every namespace of the server, other tests' too. A
    test that must see what waits is marked `unindexed`, with the reason: it has a database where nothing is indexed
    unless the test does it. One with another embedding model is marked `alone`, or whichever indexer comes first would
    decide the model of its namespace, and its own would decide that of others.
    """
    if (embedded_only := request.node.get_closest_marker("embedded")) and _CITUS in os.environ:
        pytest.skip(f"of the embedded server: {embedded_only.args[0]}")
    monkeypatch.setenv("RECOLLECT_DATA_DIR", os.environ[_HOME])
    monkeypatch.setenv("RECOLLECT_NAMESPACE", namespace)
    monkeypatch.setenv("RECOLLECT_DATABASE_POOLING", pooling)
    if _CITUS in os.environ:
        monkeypatch.setenv("RECOLLECT_DATABASE_URL", _distributed(os.environ[_CITUS]))
    if unindexed := request.node.get_closest_marker("unindexed"):
        assert unindexed.args, "say why: pytest.mark.unindexed('it counts what waits')"
        monkeypatch.setenv("RECOLLECT_DATABASE_URL", request.getfixturevalue("still_database"))
        monkeypatch.setenv("RECOLLECT_INDEXER", "false")
    if request.node.get_closest_marker("alone"):
        monkeypatch.setenv("RECOLLECT_DATABASE_URL", request.getfixturevalue("lone_database"))
    return Settings()


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    engine = await Engine.open(settings)
    yield engine
    await engine.close()


@pytest.fixture
async def memory(settings: Settings) -> AsyncIterator[MemoryManager]:
    async with MemoryManager(settings) as memory:
        yield memory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, or one process would run them when the others have nothing left to do."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests stay to the end: the collector need not look through them again and again."""
    gc.collect()
    gc.freeze()
