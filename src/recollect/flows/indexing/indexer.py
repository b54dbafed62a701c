"""Indexing: embeds passages and counts their words in the background, newest first and fairly."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil

from recollect import tasks, telemetry
from recollect.errors import RecollectError, Unavailable
from recollect.flows.indexing.namespace_models import NamespaceModels
from recollect.inference.embedding import cores
from recollect.inference.embedding.embedder import Closed, Embedder, as_text
from recollect.memory.index.passages import Claim, Passages
from recollect.storage.database import Database, Transaction

# Passages a transaction: large enough to keep the model busy, small enough that a kill repeats little.
BATCH = 32
BATCH_WITHOUT_MODEL = 512

# Beside one batch per core that is being embedded, so many are read or written.
MORE_THAN_CORES = 1
# Batches per worker and round while few namespaces have work; then the indexer looks for others again.
BATCHES_EACH = 2

# Writes of this process wake the indexer; this is for what others left behind.
POLL_SECONDS = 5.0
FLUSH_POLL_SECONDS = 0.02
FLUSH_SECONDS = 30.0
RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

# Passages that the writer of one of them can wait for: a second or two.
SHORT_BACKLOG = 64

MAX_WAITING = 1_000_000

_log = logging.getLogger(__name__)


class Indexer:
    """Drains the queue. Any number of them may run; killed anywhere, one leaves nothing half done."""

    def __init__(
        self,
        database: Database,
        passages: Passages,
        namespace_models: NamespaceModels,
        indexed: Callable[[str], None],
        at_once: int,
    ) -> None:
        self._database = database
        self._passages = passages
        self._namespace_models = namespace_models
        self._indexed = indexed
        # Embedding holds a connection, and a provider's embedder needs another one to pay: some must stay free.
        self._embedding = asyncio.Semaphore(at_once)
        self._workers = min(at_once, cores.at_once() + MORE_THAN_CORES)
        self._work = asyncio.Event()
        self._task = tasks.BackgroundTask("recollect-indexer")

    def start(self) -> None:
        """Begin to work in the background."""
        self._task.start(self._run())

    async def close(self) -> None:
        """Stop; what was not committed stays in the queue."""
        await self._task.stop()

    def wake(self) -> None:
        """Something was written."""
        cores.note_request()
        self._work.set()

    async def round(self) -> int:
        """A batch for every namespace that has work, some at once; returns how many passages were done."""
        turns = deque(await self._passages.namespaces_with_work(self._database))
        if len(turns) < self._workers:
            for namespace in list(turns):
                turns.extend([namespace] * (await self._batches(namespace) - 1))
        failures: dict[str, RecollectError] = {}
        async with tasks.beside(*(self._take_turns(turns, failures) for _ in range(self._workers))) as workers:
            done = sum(await asyncio.gather(*workers))
        if failures and done == 0:
            raise next(iter(failures.values()))
        return done

    async def _batches(self, namespace: str) -> int:
        """How many batches to do of a namespace when there are few others."""
        most = BATCHES_EACH * self._workers
        async with self._database.reading(namespace) as db:
            return ceil(await self._passages.waiting(db, most * BATCH) / BATCH)

    async def _take_turns(self, turns: deque[str], failures: dict[str, RecollectError]) -> int:
        """Do batches until there are no more turns; returns how many passages were done."""
        done = 0
        while turns:
            namespace = turns.popleft()
            if namespace in failures:
                continue
            try:
                done += await self._batch(namespace)
            except Closed:
                raise
            except RecollectError as problem:
                # A namespace whose budget is spent, or whose provider is down, must not keep the others waiting.
                # Its name is a field of the log: a program without logging prints the sentence alone, and may not tell
                # its user of another namespace.
                if namespace not in failures:
                    _log.warning("Indexing of a namespace failed: %s", problem, extra={"namespace": namespace})
                failures[namespace] = problem
        return done

    async def flush(self, namespace: str, progress: Callable[[int], None] | None = None) -> str | None:
        """Return when everything written to the namespace so far is indexed, by us or by another indexer.

        `progress` hears how many passages wait. Without a model only their words are counted, and a sentence says so.
        """
        at_once = 1
        while True:
            async with tasks.beside(*(self._batch(namespace) for _ in range(at_once))) as batches:
                done = sum(await asyncio.gather(*batches))
            waiting = await self.waiting(namespace)
            at_once = min(self._workers, ceil(waiting / BATCH))
            if progress is not None:
                progress(waiting)
            if waiting == 0:
                return None
            if done == 0:
                if degraded := await self._namespace_models.missing(namespace):
                    return degraded
                await asyncio.sleep(FLUSH_POLL_SECONDS)

    async def flush_if_short(self, namespace: str) -> str | None:
        """The same if it takes a second or two; a longer backlog is left to a server or `recollect index --wait`."""
        return await self.flush(namespace) if await self.waiting(namespace) <= SHORT_BACKLOG else None

    async def flush_session(
        self, namespace: str, owner: str, session_id: str, within_seconds: float = FLUSH_SECONDS
    ) -> str | None:
        """Return when everything written to a session so far is embedded, by this process or another.

        Without a model there is nothing to wait for; the returned sentence says so.
        """
        if degraded := await self._namespace_models.missing(namespace):
            return degraded
        try:
            async with asyncio.timeout(within_seconds):
                await self._finish_session(namespace, owner, session_id)
        except TimeoutError:
            raise Unavailable(
                f"Session {session_id} is stored, but not fully embedded after {within_seconds:g} s: flush again"
            ) from None
        return None

    async def _finish_session(self, namespace: str, owner: str, session_id: str) -> None:
        async with self._database.reading(namespace) as db:
            left = await self._passages.waiting_in_session(db, owner, session_id)
        while left:
            embedder = await self._namespace_models.embedder(namespace)
            if embedder is None:
                return
            async with self._embedding, self._database.transaction(namespace) as tx:
                claims = await self._passages.claim_some(tx, left, BATCH)
                done = await self._complete(tx, claims, embedder)
            if done:
                telemetry.passages_indexed(done)
                self._indexed(namespace)
            else:
                # Another indexer works on them, or the namespace has just moved to another model.
                await asyncio.sleep(FLUSH_POLL_SECONDS)
            async with self._database.reading(namespace) as db:
                left = await self._passages.waiting_of(db, left)

    async def waiting(self, namespace: str, at_most: int = MAX_WAITING) -> int:
        """How many passages of a namespace are still to be indexed, up to a bound."""
        async with self._database.reading(namespace) as db:
            return await self._passages.waiting(db, at_most)

    async def waiting_anywhere(self) -> int:
        """The same for all namespaces together."""
        return await self._passages.waiting_anywhere(self._database, MAX_WAITING)

    async def _run(self) -> None:
        failures = 0
        while True:
            self._work.clear()
            try:
                done = await self.round()
                failures = 0
            except Closed:
                return
            # A task that is never awaited would end unnoticed, and indexing with it.
            except Exception as problem:  # noqa: BLE001
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                unexpected = None if isinstance(problem, RecollectError) else problem
                _log.warning("Indexing failed; retrying in %s s: %s", pause, problem, exc_info=unexpected)
                await asyncio.sleep(pause)
                continue
            if done == 0:
                await tasks.set_within(POLL_SECONDS, self._work)

    async def _batch(self, namespace: str) -> int:
        embedder = await self._namespace_models.embedder(namespace)
        if embedder is None:
            return await self._count(namespace)
        try:
            async with self._embedding, self._database.transaction(namespace) as tx:
                claims = await self._passages.claim(tx, BATCH, with_model=True)
                done = await self._complete(tx, claims, embedder)
        except RecollectError:
            # Words need no model, and a provider may be down for long.
            await self._count(namespace)
            raise
        if done:
            telemetry.passages_indexed(done)
            self._indexed(namespace)
        elif claims:
            self._work.set()
        return done

    async def _count(self, namespace: str) -> int:
        """Count words alone; returns of how many passages."""
        async with self._database.transaction(namespace) as tx:
            claims = await self._passages.claim(tx, BATCH_WITHOUT_MODEL, with_model=False)
            if claims:
                await self._passages.count_only(tx, claims)
        return len(claims)

    async def _complete(self, tx: Transaction, claims: Sequence[Claim], embedder: Embedder) -> int:
        """How many were done: none of them if the namespace moved to another model meanwhile."""
        if not claims:
            return 0
        vectors = await embedder.embed_documents([claim.text for claim in claims])
        if not await self._namespace_models.is_settled_on(tx, embedder.model_id):
            return 0
        await self._passages.complete(tx, claims, embedder.model_id, list(map(as_text, vectors)))
        return len(claims)
