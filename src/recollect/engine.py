"""The composition root: opens the database and builds every capability and flow; nothing else wires anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

from recollect import settings as environment
from recollect.flows.cognition import Cognition
from recollect.flows.conversations import Conversations
from recollect.flows.findable import Findable
from recollect.flows.forget import Forget
from recollect.flows.graph import GraphMemory
from recollect.flows.indexing import Indexer
from recollect.flows.legs import Legs
from recollect.flows.maintenance import Maintenance
from recollect.flows.recall import Recall
from recollect.flows.remember import Remember
from recollect.inference.embedder import Embedder
from recollect.inference.local import LocalEmbedder
from recollect.memory.documents import Documents
from recollect.memory.episodes import Episodes
from recollect.memory.giants import Giants
from recollect.memory.graph import Graph
from recollect.memory.insights import Insights
from recollect.memory.log import Log
from recollect.memory.passages import Passages
from recollect.memory.search import Search
from recollect.memory.sessions import Sessions
from recollect.memory.working import Working
from recollect.settings import Settings
from recollect.storage import embedded
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, check_server, migrate


class Engine:
    """One memory: a database and everything that reads and writes it."""

    def __init__(
        self, settings: Settings, database: Database, embedder: Embedder | None, resources: AsyncExitStack
    ) -> None:
        self.settings = settings
        self.database = database
        self.sessions = Sessions()
        self.log = Log()
        self.documents = Documents()
        self.passages = Passages()
        self.giants = Giants()
        self.insights = Insights()
        self.working = Working()
        self.episodes = Episodes()
        self.maintenance = Maintenance(database, self.giants, embedder)
        self.indexer = Indexer(database, self.passages, embedder, indexed=self.maintenance.touch)
        self.remember = Remember(
            database, self.sessions, self.log, self.documents, self.passages, written=self.indexer.wake
        )
        self.conversations = Conversations(database, self.sessions, self.log, self.remember)
        self.recall = Recall(database, Search(), self.giants, embedder)
        self.graph = GraphMemory(database, Graph())
        self.cognition = Cognition(
            database,
            self.remember,
            self.log,
            self.insights,
            self.working,
            self.episodes,
            Findable(self.passages, embedder, written=self.indexer.wake, indexed=self.maintenance.touch),
            Legs(database, Search(), self.passages, embedder),
        )
        self.forget = Forget(database, self.passages, self.log, self.documents, self.insights, self.episodes)
        self._resources = resources
        self._resources.push_async_callback(self.maintenance.close)
        self._resources.push_async_callback(self.indexer.close)
        self._resources.push_async_callback(self.remember.close)
        if settings.indexer:
            self.indexer.start()
            self.maintenance.start()

    @classmethod
    async def open(cls, settings: Settings | None = None) -> Self:
        """Open the memory that the settings name, starting the embedded server if they name no other."""
        settings = settings or environment.load()
        async with AsyncExitStack() as resources:
            database = await resources.enter_async_context(connected(settings))
            await migrate(database)
            embedder = LocalEmbedder.locate(settings.embedding_model_path)
            if embedder is not None:
                resources.callback(embedder.close)
            return cls(settings, database, embedder, resources.pop_all())
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
            lease = await _leased(home)
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


async def _leased(home: Path) -> embedded.Lease:
    """A lease, taken in a thread; a caller that is cancelled meanwhile must not leave it taken."""
    starting = asyncio.ensure_future(asyncio.to_thread(embedded.start, home))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_release_unwanted)
        raise


def _release_unwanted(starting: "asyncio.Future[embedded.Lease]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().release()
