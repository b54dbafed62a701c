"""Status: figures for operators, at a cost that does not grow with the data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.flows.accounts.activity import Activity, Period
from recollect.flows.accounts.audit import Level
from recollect.flows.accounts.spending import Spending
from recollect.flows.capabilities import Capabilities
from recollect.flows.defence.screening import Mode
from recollect.flows.indexing.namespace_models import CurrentModel, NamespaceModels
from recollect.flows.kinds import registry
from recollect.memory.index import giants
from recollect.memory.index.sizes import COUNTED, INDEX, Count, Counts
from recollect.storage import citus, statistics
from recollect.storage.database import Database
from recollect.storage.migrate import ServerVersions, check_server

# An indexer that runs is done in seconds; a large import may keep it for a while.
MAX_LAG_SECONDS = 300.0

# The last part of a budget is out of reach: a request sets aside the most that it may take.
BUDGET_SPENT = 0.95


@dataclass(frozen=True, slots=True)
class Size:
    """How many of a kind, and about how many bytes they take with their part of the indexes."""

    rows: int
    exact: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Passages that are not embedded yet; if it is not exact, there are more than that."""

    waiting: int
    exact: bool
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Large:
    """Owners above the threshold, None being the whole namespace: with an index of their own, and still without."""

    indexed: list[str | None]
    without_index: list[str | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens of this day (UTC) that are spent or set aside, those allowed, and what each feature took."""

    spent_today: int
    daily_tokens: int
    features: dict[str, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """How this process is set to defend and audit the memory, items that wait by state, and masked secrets by kind."""

    defence: Mode
    masking: bool
    audit: Level
    waiting: dict[str, int]
    masked: dict[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """Where a namespace stands; `attention` has a sentence for everything that somebody should look at."""

    namespace: str
    server: ServerVersions
    database_bytes: int
    memory: dict[str, Size]
    messages: dict[str, Count]
    activity: list[Period]
    indexer: Backlog
    giants: Large
    embeddings: CurrentModel
    llm: Budget
    keys: Count
    users: Count
    defence: Standing
    attention: list[str]


class Status:
    """Reads; nothing here waits for a model or changes a row."""

    def __init__(
        self,
        database: Database,
        capabilities: Capabilities,
        namespace_models: NamespaceModels,
        spending: Spending,
        activity: Activity,
        defence: Mode,
        *,
        masking: bool,
        audit: Level,
    ) -> None:
        self._database = database
        self._capabilities = capabilities
        self._namespace_models = namespace_models
        self._spending = spending
        self._activity = activity
        self._defence = defence
        self._masking = masking
        self._audit = audit

    async def report(self, namespace: str, counted: int | None = None) -> Report:
        """Everything at once; a reader in a hurry has less counted, and more estimated."""
        counts, memory, indexer = await self._counts(namespace, counted)
        embeddings = await self._namespace_models.current(namespace)
        features: Counter[str] = Counter()
        for line in await self._spending.lines(namespace, days=1):
            features[line.feature] += line.input_tokens + line.output_tokens
        spent = await self._spending.spent_today(namespace)
        llm = Budget(spent, self._spending.daily_tokens, dict(features))
        standing = await self._standing(namespace)
        return Report(
            namespace=namespace,
            server=await check_server(self._database),
            database_bytes=await statistics.database_bytes(self._database),
            memory=memory,
            messages=counts.messages,
            activity=await self._activity.report(namespace),
            indexer=indexer,
            giants=await self._large(namespace, embeddings.active, counts.memory["vectors"]),
            embeddings=embeddings,
            llm=llm,
            keys=counts.keys,
            users=counts.users,
            defence=standing,
            attention=[
                *_attention(indexer, embeddings, llm, await citus.unreachable(self._database)),
                *([f"{waits}: `recollect review list`"] if (waits := waits_for_review(standing)) else []),
            ],
        )

    async def _standing(self, namespace: str) -> Standing:
        async with self._database.reading(namespace) as db:
            waiting = await self._capabilities.held.count(db)
            masked = await self._capabilities.held.masked(db)
        return Standing(self._defence, self._masking, self._audit, waiting, masked)

    async def _counts(self, namespace: str, counted_rows: int | None) -> tuple[Counts, dict[str, Size], Backlog]:
        """What there is of each kind of memory and of the index, its part of the tables, and what waits."""
        tables = await statistics.relations(self._database)
        # The rows of each, and the tables that hold them: the first has a row for each.
        counted = {
            name: (kind.record.size, (kind.record.table, *kind.shown_with))
            for name, kind in registry.counted().items()
            if kind.record.size is not None
        } | INDEX
        async with self._database.reading(namespace) as db:
            kinds = {name: rows for name, (rows, _) in counted.items()}
            counts = await self._capabilities.sizes.counts(db, kinds, counted_rows)
            most = counted_rows or COUNTED
            waiting, seconds = await self._capabilities.passages.backlog(db, most + 1)
        memory: dict[str, Size] = {}
        for name, count in counts.memory.items():
            of_kind = [tables[table] for table in counted[name][1]]
            # The namespace's share of the tables, by its share of their rows.
            of_all = max(of_kind[0].rows, count.rows)
            total = sum(table.bytes for table in of_kind)
            memory[name] = Size(count.rows, count.exact, total * count.rows // of_all if of_all else 0)
        return counts, memory, Backlog(min(waiting, most), waiting <= most, round(seconds, 1))

    async def _large(self, namespace: str, model: str | None, vectors: Count) -> Large:
        if model is None or vectors.rows <= giants.THRESHOLD:
            return Large([], [])
        async with self._database.reading(namespace) as db:
            known = {giant.owner for giant in await self._capabilities.giants.known(db) if giant.model == model}
            if vectors.exact:
                large = list(await self._capabilities.giants.large_owners(db, model))
        if not vectors.exact:
            # Counting every owner would read every vector; who is large is frequent in the server's own sample.
            frequent = await statistics.frequent_values(self._database, "passage_vectors", "owner", giants.THRESHOLD)
            async with self._database.reading(namespace) as db:
                large = [None, *await self._capabilities.giants.large_among(db, model, frequent)]
        return Large(_by_name(known), _by_name(set(large) - known))


def waits_for_review(standing: Standing) -> str | None:
    """How many held items nobody has decided on yet."""
    held = standing.waiting.get("held", 0)
    return f"{held:,} {'item waits' if held == 1 else 'items wait'} for review" if held else None


def _by_name(owners: set[str | None]) -> list[str | None]:
    """The namespace itself comes first."""
    return sorted(owners, key=lambda owner: (owner is not None, owner or ""))


def _attention(indexer: Backlog, embeddings: CurrentModel, llm: Budget, workers_away: Sequence[str]) -> list[str]:
    """A sentence for each worker that is away, for an indexer that lags, and for a budget that is spent."""
    sentences = [
        f"Worker {worker} does not answer: its namespaces are unavailable, and its rows are not in these sizes"
        for worker in workers_away
    ]
    # Without a model everything waits, and nothing is amiss.
    if embeddings.active is not None and indexer.oldest_seconds > MAX_LAG_SECONDS:
        sentences.append(
            f"The indexer is behind: {indexer.waiting:,} passage(s) are waiting to be embedded, the oldest for "
            f"{indexer.oldest_seconds / 60:,.0f} minutes. Check that a server is running with RECOLLECT_INDEXER on, "
            "and check its log. `recollect index --wait` embeds them now."
        )
    if llm.daily_tokens != 0 and llm.spent_today >= BUDGET_SPENT * llm.daily_tokens:
        sentences.append(
            f"Today's token budget is used up: {llm.spent_today:,} of {llm.daily_tokens:,}. No provider is called "
            "until midnight (UTC). RECOLLECT_LLM_DAILY_TOKENS raises the budget; `recollect usage` shows what used it."
        )
    return sentences
