"""Every capability, built once: for the engine, which wires them, and for flows that touch nearly all."""

from dataclasses import dataclass, field

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
from recollect.memory.sizes import Sizes
from recollect.memory.turns import ModelTurns
from recollect.memory.usage import Usage
from recollect.memory.windows import Windows
from recollect.memory.working import Working


@dataclass(frozen=True, slots=True)
class Capabilities:
    """None of them keeps anything, so that all flows may share them."""

    sessions: Sessions = field(default_factory=Sessions)
    log: Log = field(default_factory=Log)
    windows: Windows = field(default_factory=Windows)
    documents: Documents = field(default_factory=Documents)
    memories: Memories = field(default_factory=Memories)
    resources: Resources = field(default_factory=Resources)
    insights: Insights = field(default_factory=Insights)
    working: Working = field(default_factory=Working)
    episodes: Episodes = field(default_factory=Episodes)
    graph: Graph = field(default_factory=Graph)
    golden: Golden = field(default_factory=Golden)
    judging: Judging = field(default_factory=Judging)
    passages: Passages = field(default_factory=Passages)
    search: Search = field(default_factory=Search)
    giants: Giants = field(default_factory=Giants)
    embedding_models: EmbeddingModels = field(default_factory=EmbeddingModels)
    keys: Keys = field(default_factory=Keys)
    usage: Usage = field(default_factory=Usage)
    turns: ModelTurns = field(default_factory=ModelTurns)
    sizes: Sizes = field(default_factory=Sizes)
    records: Records = field(default_factory=Records)
