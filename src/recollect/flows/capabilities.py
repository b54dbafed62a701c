"""Every capability, built once: for the engine, which wires them, and for flows that touch nearly all."""

from dataclasses import dataclass, field

from recollect.memory.accounts.access import Keys
from recollect.memory.accounts.activity import RecallCounts
from recollect.memory.accounts.audit import AuditLog
from recollect.memory.accounts.clients import OAuthClients
from recollect.memory.accounts.connections import StoredConnections
from recollect.memory.accounts.grants import KeyGrants
from recollect.memory.accounts.jobs import StoredJobs
from recollect.memory.accounts.quotas import QuotaUse
from recollect.memory.accounts.turns import ModelTurns
from recollect.memory.accounts.usage import Usage
from recollect.memory.changes import Changes
from recollect.memory.checkpoints import Checkpoints
from recollect.memory.cognitive.entities import Entities
from recollect.memory.cognitive.episodes import Episodes
from recollect.memory.cognitive.golden import Golden
from recollect.memory.cognitive.graph import Graph
from recollect.memory.cognitive.graph_pages import GraphPages
from recollect.memory.cognitive.insights import Insights
from recollect.memory.cognitive.judging import Judging
from recollect.memory.cognitive.working import Working
from recollect.memory.documents import Documents
from recollect.memory.index.embedding_models import EmbeddingModels
from recollect.memory.index.giants import Giants
from recollect.memory.index.held import Held
from recollect.memory.index.passages import Passages
from recollect.memory.index.search import Search
from recollect.memory.index.sizes import Sizes
from recollect.memory.keyed_records import KeyedRecords
from recollect.memory.log import Log
from recollect.memory.memories import Memories
from recollect.memory.records import Records
from recollect.memory.resources import Resources
from recollect.memory.sessions import Sessions
from recollect.memory.store_files import StoreFiles
from recollect.memory.stores import Stores
from recollect.memory.traces import Traces
from recollect.memory.unchanged import UnchangedMemories
from recollect.memory.windows import Windows


@dataclass(frozen=True, slots=True)
class Capabilities:
    """None of them keeps anything, so that all flows may share them."""

    sessions: Sessions = field(default_factory=Sessions)
    log: Log = field(default_factory=Log)
    windows: Windows = field(default_factory=Windows)
    documents: Documents = field(default_factory=Documents)
    memories: Memories = field(default_factory=Memories)
    unchanged: UnchangedMemories = field(default_factory=UnchangedMemories)
    resources: Resources = field(default_factory=Resources)
    stores: Stores = field(default_factory=Stores)
    store_files: StoreFiles = field(default_factory=StoreFiles)
    keyed_records: KeyedRecords = field(default_factory=KeyedRecords)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    insights: Insights = field(default_factory=Insights)
    working: Working = field(default_factory=Working)
    episodes: Episodes = field(default_factory=Episodes)
    graph: Graph = field(default_factory=Graph)
    graph_pages: GraphPages = field(default_factory=GraphPages)
    entities: Entities = field(default_factory=Entities)
    golden: Golden = field(default_factory=Golden)
    judging: Judging = field(default_factory=Judging)
    passages: Passages = field(default_factory=Passages)
    held: Held = field(default_factory=Held)
    search: Search = field(default_factory=Search)
    giants: Giants = field(default_factory=Giants)
    embedding_models: EmbeddingModels = field(default_factory=EmbeddingModels)
    keys: Keys = field(default_factory=Keys)
    key_grants: KeyGrants = field(default_factory=KeyGrants)
    clients: OAuthClients = field(default_factory=OAuthClients)
    connections: StoredConnections = field(default_factory=StoredConnections)
    quota_use: QuotaUse = field(default_factory=QuotaUse)
    usage: Usage = field(default_factory=Usage)
    recall_counts: RecallCounts = field(default_factory=RecallCounts)
    audit: AuditLog = field(default_factory=AuditLog)
    jobs: StoredJobs = field(default_factory=StoredJobs)
    turns: ModelTurns = field(default_factory=ModelTurns)
    sizes: Sizes = field(default_factory=Sizes)
    records: Records = field(default_factory=Records)
    changes: Changes = field(default_factory=Changes)
    traces: Traces = field(default_factory=Traces)
