"""Opens the database that the settings name, starting the embedded server if they name no other."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from recollect import tasks
from recollect.errors import Misconfigured, Unavailable
from recollect.settings import Settings
from recollect.storage import citus, embedded, roles
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, migrate
from recollect.storage.replica import Standby

# Migrations need one, and so does the building of an index.
OWNER_CONNECTIONS = 2


def place(settings: Settings) -> str:
    """Where the data is, in words that hold no secret."""
    if settings.database_url is not None:
        return "the database of RECOLLECT_DATABASE_URL"
    return str((settings.data_dir or embedded.default_home()).absolute())


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Database]:
    """A database with no promise about its schema."""
    async with AsyncExitStack() as resources:
        database = await _opened(settings, await _target(settings, resources), resources)
        if (owner := settings.database_owner_url) is not None:
            options = {"connections": OWNER_CONNECTIONS, "setting": "RECOLLECT_DATABASE_OWNER_URL"}
            database.owner = await _opened(settings, {"dsn": owner.get_secret_value()}, resources, **options)
        database.distributed = database.owner.distributed = await citus.is_distributed(database)
        if (copy := settings.database_read_url) is not None:
            if database.distributed:
                raise Misconfigured("RECOLLECT_DATABASE_READ_URL cannot be used with tables distributed by Citus")
            options = {"setting": "RECOLLECT_DATABASE_READ_URL", "optional": True}
            standby = Standby(database, await _opened(settings, {"dsn": copy.get_secret_value()}, resources, **options))
            database.replica = standby
            await standby.try_out()
        yield database


async def _target(settings: Settings, resources: AsyncExitStack) -> Mapping[str, Any]:
    """The server to connect to; the embedded one stays until the resources are released."""
    if settings.database_url is not None:
        return {"dsn": settings.database_url.get_secret_value()}
    for name in ("database_owner_url", "database_read_url"):
        if getattr(settings, name) is not None:
            raise Misconfigured(f"RECOLLECT_{name.upper()} needs RECOLLECT_DATABASE_URL")
    taking = _Taking(settings.data_dir or embedded.default_home())
    try:
        lease = await tasks.in_thread(taking.run)
    except asyncio.CancelledError:
        taking.give_up()
        raise
    resources.callback(lease.release)
    return lease.connection.target


async def _opened(settings: Settings, target: Mapping[str, Any], resources: AsyncExitStack, **options: Any) -> Database:
    common = {
        "pooling": settings.database_pooling,
        "connections": settings.database_connections,
        "timeout": settings.database_timeout_seconds,
    }
    try:
        database = await Database.open(target, **common | options)
    except (Unavailable, Misconfigured) as problem:
        if (setting := options.get("setting")) is None or setting in str(problem):
            raise
        raise type(problem)(f"{setting}: {problem}") from problem
    resources.push_async_callback(database.close)
    return database


async def up_to_date(database: Database) -> ServerVersions:
    """Bring a database to the schema of this code, distributed where it is, and with the rights that roles need."""
    versions = await migrated(database)
    if database.distributed:
        await citus.finish(database)
    await roles.settle(database)
    return versions


async def migrated(database: Database) -> ServerVersions:
    """Apply pending migrations, as the role that owns the tables."""
    await roles.check(database)
    return await migrate(database.owner)


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
