"""Opens the database that the settings name, starting the embedded server if they name no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from threading import Lock

from recollect import tasks
from recollect.errors import Misconfigured
from recollect.settings import Settings
from recollect.storage import citus, embedded
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, migrate


def place(settings: Settings) -> str:
    """Where the data is, in words that hold no secret."""
    if settings.database_url is not None:
        return "the database of RECOLLECT_DATABASE_URL"
    return str((settings.data_dir or embedded.default_home()).absolute())


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Database]:
    """A database with no promise about its schema."""
    async with AsyncExitStack() as resources:
        if settings.database_url is not None:
            target = {"dsn": settings.database_url.get_secret_value()}
        else:
            home = settings.data_dir or embedded.default_home()
            taking = _Taking(home)
            try:
                lease = await tasks.in_thread(taking.run)
            except asyncio.CancelledError:
                taking.give_up()
                raise
            resources.callback(lease.release)
            target = lease.connection.target
        database = await Database.open(
            target,
            pooling=settings.database_pooling,
            connections=settings.database_connections,
            timeout=settings.database_timeout_seconds,
        )
        resources.push_async_callback(database.close)
        database.distributed = await citus.is_distributed(database)
        if database.distributed and database.pooling != "transaction":
            raise Misconfigured(citus.NEEDS_TRANSACTION_POOLING)
        yield database


async def up_to_date(database: Database) -> ServerVersions:
    """Bring a database to the schema of this code, also where its tables are distributed."""
    versions = await migrate(database)
    if database.distributed:
        await citus.finish(database)
    return versions


class _Taking:
    """A lease taken in a thread; a caller that is cancelled meanwhile gives up, and does not leave it taken."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = Lock()
        self._lease: embedded.Lease | None = None
        self._wanted = True

    def run(self) -> embedded.Lease:
        lease = embedded.start(self._home)
        with self._lock:
            if self._wanted:
                self._lease = lease
            else:
                lease.release()
        return lease

    def give_up(self) -> None:
        with self._lock:
            self._wanted = False
            if self._lease is not None:
                self._lease.release()
