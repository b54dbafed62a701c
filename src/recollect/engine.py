"""The composition root: opens the database and builds every capability and flow; nothing else wires anything."""

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from recollect import settings as environment
from recollect import tasks
from recollect.errors import Misconfigured, Unavailable
from recollect.flows.accounts.access import Access
from recollect.flows.accounts.activity import Activity
from recollect.flows.accounts.audit import Audit
from recollect.flows.accounts.audit_trail import AuditTrail
from recollect.flows.accounts.clients import Clients
from recollect.flows.accounts.connections import Connections
from recollect.flows.accounts.grants import Grants
from recollect.flows.accounts.quotas import Quotas
from recollect.flows.accounts.spending import Spending
from recollect.flows.capabilities import Capabilities
from recollect.flows.coding import CodingMemory
from recollect.flows.cognitive.cognition import Cognition
from recollect.flows.cognitive.entities import EntityMemory
from recollect.flows.cognitive.golden_test import GoldenTest
from recollect.flows.cognitive.graph import GraphMemory
from recollect.flows.cognitive.graph_browsing import GraphBrowsing
from recollect.flows.cognitive.ground_truth import GroundTruth
from recollect.flows.cognitive.judge import Judges, judge_models
from recollect.flows.cognitive.pacing import Pacing
from recollect.flows.conversations import Conversations
from recollect.flows.defence.masking import Masking, MasksSecrets
from recollect.flows.defence.rescreening import Rescreening
from recollect.flows.defence.review import Review
from recollect.flows.defence.screening import ScreenedPassages
from recollect.flows.feed import Feed
from recollect.flows.forgetting.forget import Forget
from recollect.flows.forgetting.prune import Prune
from recollect.flows.forgetting.removal import Removal
from recollect.flows.gateway import Gateway
from recollect.flows.indexing.giant_indexes import GiantIndexes
from recollect.flows.indexing.indexer import Indexer
from recollect.flows.indexing.maintenance import Maintenance
from recollect.flows.indexing.model_switch import EmbeddingSwitch
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.flows.indexing.node_passages import NodePassages
from recollect.flows.indexing.passage_writer import PassageWriter
from recollect.flows.jobs.jobs import Jobs
from recollect.flows.jobs.long_work import LongWork
from recollect.flows.keyed.checkpoints import CheckpointStore
from recollect.flows.keyed.records import RecordStore
from recollect.flows.lineage import Lineage
from recollect.flows.long_term.clearing import MemoryClearing
from recollect.flows.long_term.facts import Facts
from recollect.flows.long_term.memories import LongTermMemory
from recollect.flows.long_term.pinned import PinnedMemories
from recollect.flows.named_items import NamedItems
from recollect.flows.remember import Remember
from recollect.flows.search.citations import Citations
from recollect.flows.search.item_search import ItemSearch
from recollect.flows.search.nomination import Nomination
from recollect.flows.search.recall import Recall
from recollect.flows.sessions import ChatSessions
from recollect.flows.short_term.context_window import ContextWindow, WindowDefaults
from recollect.flows.short_term.summaries import Summarising
from recollect.flows.short_term.transcripts import Transcripts
from recollect.flows.short_term.window_stores import BufferedWindows, LogWindows, WindowStore
from recollect.flows.status import Status
from recollect.flows.stores.files import Files
from recollect.flows.stores.stores import MemoryStores
from recollect.flows.transfer.exporting import Exporting
from recollect.flows.transfer.foreign.foreign_files import ForeignFiles
from recollect.flows.transfer.foreign_imports import Adopting
from recollect.flows.transfer.importing import Importing
from recollect.inference.embedding.embedders import Embedders, LocalModels
from recollect.inference.providers import Providers
from recollect.settings import Settings
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, check_server
from recollect.storage.opening import connected, up_to_date


class Engine:
    """One memory: a database and everything that reads and writes it."""

    def __init__(self, settings: Settings, database: Database, models: LocalModels, resources: AsyncExitStack) -> None:
        self.settings = settings
        self.database = database
        self.capabilities = capabilities = Capabilities()
        if settings.defence != "off":
            screened = ScreenedPassages(capabilities.held, settings.defence)
            self.capabilities = capabilities = replace(capabilities, passages=screened)
        self._resources = resources
        self.activity = Activity(database, capabilities.recall_counts, capabilities.changes)
        # Who embeds, who writes sentences, and what that may cost.
        self.spending = Spending(database, capabilities.usage, settings.llm_daily_tokens)
        self.pacing = Pacing(database, capabilities.turns)
        self.providers = Providers(settings, self.spending, self.pacing)
        self.llm = None if settings.llm is None else self.providers.llm(settings.llm)
        self.embedders = Embedders(models, self.providers, settings.embedding_model)
        self._build_spine()
        self._build_access()
        self.status = Status(
            database,
            capabilities,
            self.namespace_models,
            self.spending,
            self.activity,
            settings.defence,
            masking=settings.masking,
            audit=settings.audit,
        )
        self.conversations = Conversations(database, capabilities.sessions, capabilities.log, self.remember)
        self.transcripts = Transcripts(database, capabilities.log, capabilities.windows, capabilities.held)
        self._build_cognition()
        self._build_memories()
        self._build_transfer()
        if settings.masking:
            self._mask()
        last_closed_first = (self.activity, self.audit, self.providers, self.maintenance, self.indexer, self.access)
        for part in (*last_closed_first, self.remember, self.jobs):
            resources.push_async_callback(part.close)
        resources.callback(self.feed.end)
        # Read when it closes: once opened, the engine has another stack.
        self._closing = tasks.ClosedAtTheEnd(lambda: self._resources.aclose())
        self.activity.start()
        if settings.indexer:
            self.indexer.start()
            self.maintenance.start(self.embeddings.sweep, self.sweep_expired)

    def _build_access(self) -> None:
        """Who may use a memory, how much, and who did."""
        database, settings, capabilities = self.database, self.settings, self.capabilities
        self.access = Access(
            database,
            capabilities.keys,
            capabilities.key_grants,
            capabilities.connections,
            capabilities.quota_use,
            capabilities.changes,
        )
        self.grants = Grants(database, capabilities.key_grants, capabilities.keys, self.access, capabilities.search)
        self.audit = Audit(database, capabilities.audit, settings.audit)
        self.audit_trail = AuditTrail(database, capabilities.audit)
        clients = Clients(database, capabilities.clients)
        self.connections = Connections(
            database, self.access, clients, capabilities.connections, self.audit, settings.public_url
        )
        self.quotas = Quotas(
            database,
            capabilities.quota_use,
            capabilities.keys,
            (settings.key_quota, settings.user_quota),
            changed=self.access.clear_cache,
        )

    def _build_transfer(self) -> None:
        """How a memory gets out of here whole, and in from elsewhere, and long work of both kinds."""
        database, capabilities = self.database, self.capabilities
        records, changes = capabilities.records, capabilities.changes
        self.exporting = Exporting(database, records, self.forget)
        self.importing = Importing(
            database,
            records,
            capabilities.sessions,
            capabilities.memories,
            capabilities.working,
            capabilities.passages,
            changes,
            written=self._written,
        )
        self.adopting = Adopting(
            database, records, capabilities.graph, self._node_passages, changes, self.importing, written=self._written
        )
        self.foreign_files = ForeignFiles(
            database, capabilities, self.importing, self._passage_writer, written=self._written
        )
        self.jobs = Jobs(database, capabilities.jobs, self.audit)
        self.long_work = LongWork(
            self.jobs,
            self.embeddings,
            self.indexer,
            self.importing,
            self.adopting,
            self.foreign_files,
            self.prune,
            self.quotas,
            self.settings.embedding_model,
        )

    def _mask(self) -> None:
        """Have every flow that stores what somebody wrote look for secrets in it first."""
        masking = Masking(self.database, self.capabilities.held)
        for flow in vars(self).values():
            if isinstance(flow, MasksSecrets):
                flow.masking = masking

    def _build_spine(self) -> None:
        """Every write, every way to find it again, and what embeds passages in the background."""
        capabilities = self.capabilities
        self.feed = Feed(self.database, capabilities)
        models = capabilities.embedding_models
        self.namespace_models = NamespaceModels(self.database, models, self.embedders)
        self.indexes = GiantIndexes(self.database, capabilities.giants, capabilities.embedding_models)
        self.maintenance = Maintenance(
            self.database,
            capabilities.passages,
            capabilities.keyed_records,
            capabilities.giants,
            self.indexes,
            self.namespace_models,
        )
        self.indexer = Indexer(
            self.database,
            capabilities.passages,
            self.namespace_models,
            indexed=self.maintenance.mark_dirty,
            at_once=max(1, self.settings.database_connections // 2),
        )
        self.embeddings = EmbeddingSwitch(
            self.database,
            models,
            capabilities.passages,
            self.indexes,
            self.namespace_models,
            build_indexes=self.maintenance.build_indexes,
            switched=self._look_after,
        )
        self.remember = Remember(
            self.database,
            capabilities.sessions,
            capabilities.log,
            capabilities.documents,
            capabilities.passages,
            capabilities.changes,
            written=self._written,
        )
        self.nomination = Nomination(self.database, capabilities.search, capabilities.giants)
        self._named_items = NamedItems(self.database, capabilities)
        citations = Citations(self.database, self._named_items, capabilities.memories)
        self.recall = Recall(
            self.database,
            capabilities.search,
            self.nomination,
            self.namespace_models,
            citations,
            capabilities.memories,
            self.activity,
        )
        self._passage_writer = PassageWriter(
            capabilities.passages, self.namespace_models, written=self._written, indexed=self._written_and_indexed
        )

    def _build_cognition(self) -> None:
        capabilities = self.capabilities
        self._node_passages = NodePassages(capabilities.entities, capabilities.passages)
        self.graph = GraphMemory(
            self.database, capabilities.graph, capabilities.changes, self._node_passages, written=self._written
        )
        self.graph_browsing = GraphBrowsing(self.database, capabilities.graph, capabilities.graph_pages, self.graph)
        self.cognition = Cognition(
            self.database,
            self.remember,
            capabilities.log,
            capabilities.insights,
            capabilities.working,
            capabilities.episodes,
            capabilities.changes,
            self._passage_writer,
            ItemSearch(
                self.database, capabilities.search, self.nomination, capabilities.passages, self.namespace_models
            ),
            self.activity,
            self.settings.fidelity_threshold,
        )
        golden, changes = capabilities.golden, capabilities.changes
        self.golden_test = GoldenTest(self.database, golden, capabilities.insights, changes, self.cognition)
        self.ground_truth = GroundTruth(self.database, golden, capabilities.judging, capabilities.insights, changes)
        self.judges = Judges(
            self.database,
            capabilities.golden,
            capabilities.judging,
            *judge_models(self.settings, self.providers),
            self.settings.judge_deadline_seconds,
        )

    def _build_memories(self) -> None:
        """Long-term memories, the gateway, short-term windows, and how any of it is forgotten."""
        capabilities, settings = self.capabilities, self.settings
        self.lineage = Lineage(self.database, capabilities, self._named_items)
        self.memories = LongTermMemory(
            self.database,
            capabilities.memories,
            capabilities.passages,
            capabilities.held,
            self._passage_writer,
            self.recall,
            capabilities.changes,
            self._named_items,
            self.llm,
        )
        self.facts = Facts(self.memories, self.llm)
        self.clearing = MemoryClearing(self.database, capabilities, self._passage_writer)
        self.pinned = PinnedMemories(self.database, capabilities.sessions, self.memories)
        self.gateway = Gateway(
            self.database,
            capabilities.sessions,
            capabilities.resources,
            capabilities.passages,
            capabilities.changes,
            self._passage_writer,
            self.remember,
            self.recall,
            self.pinned,
            self.indexer,
        )
        removal = Removal(capabilities)
        store = self._open_windows(removal)
        self._window_store = store
        self.windows = ContextWindow(
            store,
            Summarising(self.llm),
            WindowDefaults(settings.stm_strategy, settings.stm_max_messages, settings.stm_max_tokens),
        )
        self.forget = Forget(self.database, capabilities, removal, store, self.access, self.nomination, self.indexes)
        self.prune = Prune(self.database, capabilities, self._passage_writer)
        self.review = Review(
            self.database, capabilities, self._named_items, self._passage_writer, self.forget, self.memories
        )
        self.rescreening = Rescreening(self.database, capabilities, self._passage_writer, settings.defence)
        self._build_for_frameworks(removal)

    def _build_for_frameworks(self, removal: Removal) -> None:
        """What agent frameworks and coding agents keep: sessions, records, checkpoints, files and entities."""
        capabilities = self.capabilities
        self.sessions = ChatSessions(self.database, capabilities, self.remember, removal, written=self.feed.wake)
        self.record_store = RecordStore(
            self.database,
            capabilities.keyed_records,
            capabilities.passages,
            capabilities.held,
            capabilities.changes,
            capabilities.search,
            self._passage_writer,
            self.namespace_models,
        )
        self.checkpoint_store = CheckpointStore(self.database, capabilities.checkpoints)
        self.stores = MemoryStores(self.database, capabilities, removal)
        self.files = Files(self.database, capabilities, self._passage_writer)
        self.entities = EntityMemory(self.database, capabilities, self._node_passages, removal, written=self._written)
        self.coding = CodingMemory(
            self.database,
            capabilities.sessions,
            capabilities.log,
            capabilities.held,
            self.remember,
            self.recall,
            self.pinned,
            self.memories,
        )

    def _open_windows(self, removal: Removal) -> WindowStore:
        """Where short-term windows are: a view of the log, or Redis."""
        if self.settings.redis_url is None:
            return LogWindows(self.database, self.remember, self.capabilities, removal)
        try:
            from recollect.storage.buffers import Buffers
        except ImportError as problem:
            raise Misconfigured(
                "RECOLLECT_REDIS_URL needs the Redis client: pip install 'recollect[redis]'"
            ) from problem
        buffers = Buffers.open(self.settings.redis_url.get_secret_value())
        self._resources.push_async_callback(buffers.close)
        return BufferedWindows(buffers, self.database)

    @classmethod
    async def open(cls, settings: Settings | None = None, *, will_search: bool = False) -> Self:
        """Open the memory that the settings name, starting the embedded server if they name no other.

        For a caller that searches at once the local model is loaded meanwhile, and not when it is first asked.
        """
        settings = settings or environment.load()
        async with AsyncExitStack() as resources:
            models = await tasks.in_thread(LocalModels.locate, settings)
            resources.push_async_callback(models.ended)
            embedder = models.named(settings.embedding_model)
            if will_search and embedder is not None:
                embedder.begin_loading()
            database = await resources.enter_async_context(connected(settings))
            await up_to_date(database)
            engine = cls(settings, database, models, resources)
            engine._resources = resources.pop_all()
            return engine
        raise AssertionError("an exit stack does not swallow errors")

    async def sweep_expired(self, namespace: str) -> int:
        """Remove some of what has expired in a namespace; returns how many."""
        return await self.memories.sweep(namespace, once=True) + await self.record_store.sweep(namespace)

    def _written(self, namespace: str) -> None:
        """Something was stored: the indexer embeds it, and those who follow the changes hear of it."""
        self.indexer.wake()
        self.feed.wake(namespace)

    def _written_and_indexed(self, namespace: str) -> None:
        """The same for what is embedded already."""
        self.maintenance.mark_dirty(namespace)
        self.feed.wake(namespace)

    def _look_after(self, namespace: str) -> None:
        """A namespace has another model: what is left of the old one is for the background to do."""
        self.indexer.wake()
        self.maintenance.mark_dirty(namespace)

    async def close(self) -> None:
        """Finish accepted writes, then let go of the database."""
        await self._closing.close()

    async def health(self) -> ServerVersions:
        """Ask the database something; raises when it does not answer."""
        return await check_server(self.database)

    async def degraded(self) -> str | None:
        """What is set up and does not answer, though the database does, in a sentence; None if all is well."""
        try:
            await self._window_store.ping()
        except Unavailable:
            return "Redis does not answer (RECOLLECT_REDIS_URL), so short-term memory is not available"
        return None
