"""The composition root: opens the database and builds every capability and flow; nothing else wires anything."""

from contextlib import AsyncExitStack
from typing import Self

from recollect import settings as environment
from recollect.errors import Misconfigured
from recollect.flows.access import Access
from recollect.flows.adopting import Adopting
from recollect.flows.cognition import Cognition
from recollect.flows.context_window import ContextWindow, WindowDefaults
from recollect.flows.conversations import Conversations
from recollect.flows.embedding_switch import EmbeddingSwitch
from recollect.flows.exporting import Exporting
from recollect.flows.findable import Findable
from recollect.flows.forget import Forget
from recollect.flows.forget_counts import Counts
from recollect.flows.gateway import Gateway
from recollect.flows.golden_test import GoldenTest
from recollect.flows.graph import GraphMemory
from recollect.flows.importing import Importing
from recollect.flows.indexing import Indexer
from recollect.flows.judge import Judges, seated
from recollect.flows.legs import Legs
from recollect.flows.maintenance import Maintenance
from recollect.flows.memories import LongTermMemory
from recollect.flows.recall import Recall
from recollect.flows.remember import Remember
from recollect.flows.removal import Removal
from recollect.flows.spaces import Spaces
from recollect.flows.spending import Spending
from recollect.flows.status import Status
from recollect.flows.summarising import Summarising
from recollect.flows.window_stores import BufferedWindows, LogWindows, WindowStore
from recollect.inference.embedders import Embedders
from recollect.inference.local import LocalEmbedder
from recollect.inference.providers import Providers
from recollect.memory.access import Keys
from recollect.memory.documents import Documents
from recollect.memory.embedding_models import EmbeddingModels
from recollect.memory.episodes import Episodes
from recollect.memory.giants import Giants
from recollect.memory.golden import Golden
from recollect.memory.graph import Graph
from recollect.memory.insights import Insights
from recollect.memory.judging import Judging
from recollect.memory.log import Log
from recollect.memory.memories import Memories
from recollect.memory.passages import Passages
from recollect.memory.records import Records
from recollect.memory.resources import Resources
from recollect.memory.search import Search
from recollect.memory.sessions import Sessions
from recollect.memory.usage import Usage
from recollect.memory.windows import Windows
from recollect.memory.working import Working
from recollect.settings import Settings
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, check_server, migrate
from recollect.storage.opening import connected


class Engine:
    """One memory: a database and everything that reads and writes it."""

    def __init__(
        self, settings: Settings, database: Database, local: LocalEmbedder | None, resources: AsyncExitStack
    ) -> None:
        self.settings = settings
        self.database = database
        self._resources = resources
        self._build_inference(local)
        self._build_capabilities()
        self._build_background()
        self._build_spine()
        self._build_cognition()
        self._build_memories()
        self._build_moving()
        self._run()

    def _build_inference(self, local: LocalEmbedder | None) -> None:
        """Who embeds, who writes sentences, and what that may cost."""
        settings = self.settings
        self.spending = Spending(self.database, Usage(), settings.llm_daily_tokens)
        self.providers = Providers(settings, self.spending)
        self.llm = None if settings.llm is None else self.providers.llm(settings.llm)
        self.embedders = Embedders(local, self.providers, settings.embedding_model)

    def _build_capabilities(self) -> None:
        self.sessions = Sessions()
        self.log = Log()
        self.documents = Documents()
        self.passages = Passages()
        self.giants = Giants()
        self.insights = Insights()
        self.working = Working()
        self.episodes = Episodes()
        self.golden = Golden()
        self.resources = Resources()

    def _build_background(self) -> None:
        """What gives passages their meaning, and keeps it well."""
        models = EmbeddingModels()
        self.spaces = Spaces(self.database, models, self.embedders)
        self.maintenance = Maintenance(self.database, self.giants, self.spaces)
        self.indexer = Indexer(
            self.database,
            self.passages,
            self.spaces,
            indexed=self.maintenance.touch,
            at_once=max(1, self.settings.database_connections // 2),
        )
        self.embeddings = EmbeddingSwitch(
            self.database,
            models,
            self.passages,
            self.giants,
            self.spaces,
            tend=self.maintenance.tend,
            switched=self._look_after,
        )
        self.status = Status(self.database, self.passages, self.giants, models, self.embedders, self.spending)

    def _build_spine(self) -> None:
        """Every write, and every way to find it again."""
        self.access = Access(self.database, Keys())
        self.remember = Remember(
            self.database, self.sessions, self.log, self.documents, self.passages, written=self.indexer.wake
        )
        self.conversations = Conversations(self.database, self.sessions, self.log, self.remember)
        self.recall = Recall(self.database, Search(), self.giants, self.spaces)
        self._findable = Findable(self.passages, self.spaces, written=self.indexer.wake, indexed=self.maintenance.touch)

    def _build_cognition(self) -> None:
        self.graph = GraphMemory(self.database, Graph())
        self.cognition = Cognition(
            self.database,
            self.remember,
            self.log,
            self.insights,
            self.working,
            self.episodes,
            self._findable,
            Legs(self.database, Search(), self.passages, self.spaces),
        )
        self.golden_test = GoldenTest(self.database, self.golden, self.insights, self.cognition)
        self.judges = Judges(self.database, self.golden, Judging(), *seated(self.settings, self.providers))

    def _build_memories(self) -> None:
        """Short-term windows, long-term memories, the gateway, and how any of it is forgotten."""
        settings = self.settings
        store = self._window_store(settings)
        self.windows = ContextWindow(
            store,
            Summarising(self.llm),
            WindowDefaults(settings.stm_strategy, settings.stm_max_messages, settings.stm_max_tokens),
        )
        self.gateway = Gateway(
            self.database,
            self.sessions,
            self.resources,
            self.passages,
            self._findable,
            self.remember,
            self.recall,
            self.indexer,
        )
        memories = Memories()
        self.memories = LongTermMemory(self.database, memories, self.passages, self._findable, self.recall, self.llm)
        self.forget = self._forget(memories, store)

    def _forget(self, memories: Memories, store: WindowStore) -> Forget:
        windows, judging = Windows(), Judging()
        removal = Removal(
            self.passages,
            self.log,
            windows,
            self.documents,
            self.insights,
            judging,
            Graph(),
            self.episodes,
            self.working,
            memories,
            self.resources,
        )
        counts = Counts(
            self.database,
            self.sessions,
            self.log,
            self.passages,
            self.insights,
            judging,
            memories,
            self.resources,
            self.giants,
            windows,
            store,
            self.access,
        )
        return Forget(
            self.database,
            removal,
            counts,
            self.sessions,
            self.log,
            self.passages,
            memories,
            self.resources,
            self.giants,
            windows,
            store,
            self.access,
        )

    def _build_moving(self) -> None:
        """How a memory gets out of here whole, and in from elsewhere."""
        records, wake = Records(), self.indexer.wake
        self.exporting = Exporting(self.database, records)
        self.importing = Importing(self.database, records, self.sessions, self.working, self.passages, written=wake)
        self.adopting = Adopting(self.database, records, Graph(), self.importing, written=wake)

    def _run(self) -> None:
        self._resources.push_async_callback(self.providers.close)
        self._resources.push_async_callback(self.maintenance.close)
        self._resources.push_async_callback(self.indexer.close)
        self._resources.push_async_callback(self.remember.close)
        if self.settings.indexer:
            self.indexer.start()
            self.maintenance.start(self.embeddings.sweep)

    def _window_store(self, settings: Settings) -> WindowStore:
        if settings.redis_url is None:
            return LogWindows(self.database, self.remember, self.sessions, Windows(), self.passages)
        try:
            from recollect.storage.buffers import Buffers
        except ImportError as problem:
            raise Misconfigured(
                "RECOLLECT_REDIS_URL needs the client of Redis: pip install 'recollect[redis]'"
            ) from problem
        buffers = Buffers.open(settings.redis_url.get_secret_value())
        self._resources.push_async_callback(buffers.close)
        return BufferedWindows(buffers)

    @classmethod
    async def open(cls, settings: Settings | None = None) -> Self:
        """Open the memory that the settings name, starting the embedded server if they name no other."""
        settings = settings or environment.load()
        async with AsyncExitStack() as resources:
            database = await resources.enter_async_context(connected(settings))
            await migrate(database)
            local = LocalEmbedder.locate(settings.embedding_model_path)
            if local is not None:
                resources.callback(local.close)
            engine = cls(settings, database, local, resources)
            engine._resources = resources.pop_all()
            return engine
        raise AssertionError("an exit stack does not swallow errors")

    def _look_after(self, namespace: str) -> None:
        """A namespace has another model: what is left of the old one is for the background to do."""
        self.indexer.wake()
        self.maintenance.touch(namespace)

    async def close(self) -> None:
        """Finish accepted writes, then let go of the database."""
        await self._resources.aclose()

    async def health(self) -> ServerVersions:
        """Ask the database something; raises when it does not answer."""
        return await check_server(self.database)
