"""The composition root: opens the database and builds every capability and flow; nothing else wires anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

from recollect import settings as environment
from recollect.flows.conversations import Conversations
from recollect.flows.remember import Remember
from recollect.memory.documents import Documents
from recollect.memory.log import Log
from recollect.memory.sessions import Sessions
from recollect.settings import Settings
from recollect.storage import embedded
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, check_server, migrate


class Engine:
    """One memory: a database and everything that reads and writes it."""

    def __init__(self, settings: Settings, database: Database, resources: AsyncExitStack) -> None:
        self.settings = settings
        self.database = database
        self.sessions = Sessions()
        self.log = Log()
        self.documents = Documents()
        self.remember = Remember(database, self.sessions, self.log, self.documents)
        self.conversations = Conversations(database, self.sessions, self.log, self.remember)
        self._resources = resources
        self._resources.push_async_callback(self.remember.close)

    @classmethod
    async def open(cls, settings: Settings | None = None) -> Self:
        """Open the memory that the settings name, starting the embedded server if they name no other."""
        settings = settings or environment.load()
        async with AsyncExitStack() as resources:
            database = await resources.enter_async_context(connected(settings))
            await migrate(database)
            return cls(settings, database, resources.pop_all())
        raise AssertionError("an exit stack does not swallow errors")

    async def close(self) -> None:
        """Finish accepted writes, then let go of the database."""
        await self._resources.aclose()

    async def health(self) -> ServerVersions:
        """Ask the database something; raises when it does not answer."""
        return await check_server(self.database)


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Database]:
    """A database with no promise about its schema."""
    async with AsyncExitStack() as resources:
        if settings.database_url is not None:
            target = {"dsn": settings.database_url.get_secret_value()}
        else:
            home = settings.data_dir or embedded.default_home()
            lease = await asyncio.to_thread(embedded.start, home)
            resources.callback(lease.release)
            target = lease.connection.target
        database = await Database.open(
            target,
            pooling=settings.database_pooling,
            connections=settings.database_connections,
            timeout=settings.database_timeout_seconds,
        )
        resources.push_async_callback(database.close)
        yield database
