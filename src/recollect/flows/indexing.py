"""Indexing: gives passages their meaning and counts their words, in the background, newest first and fairly."""

import asyncio
import logging
from collections.abc import Callable

from recollect.errors import RecollectError
from recollect.inference.embedder import Embedder, as_text
from recollect.memory.passages import Passages
from recollect.storage.database import Database

# Passages a transaction: large enough to keep the model busy, small enough that a kill repeats little.
BATCH = 32
BATCH_WITHOUT_MODEL = 512

# Writes of this process wake the indexer; this is for what others left behind.
POLL_SECONDS = 5.0
FLUSH_POLL_SECONDS = 0.02
RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

MAX_WAITING = 1_000_000

_log = logging.getLogger(__name__)


class Indexer:
    """Drains the queue. Any number of them may run; killed anywhere, one leaves nothing half done."""

    def __init__(
        self,
        database: Database,
        passages: Passages,
        embedder: Embedder | None,
        indexed: Callable[[str], None],
    ) -> None:
        self._database = database
        self._passages = passages
        self._embedder = embedder
        self._indexed = indexed
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work in the background."""
        self._task = asyncio.create_task(self._run(), name="recollect-indexer")

    async def close(self) -> None:
        """Stop; what was not committed stays in the queue."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Something was written."""
        self._work.set()

    async def round(self) -> int:
        """One batch for every namespace that has work; returns how many passages were done."""
        done = 0
        for namespace in await self._passages.namespaces_with_work(self._database):
            done += await self._batch(namespace)
        return done

    async def flush(self, namespace: str, progress: Callable[[int], None] | None = None) -> None:
        """Return when everything written to the namespace so far is indexed, by us or by another indexer.

        `progress` hears how many passages wait. Without a model only their words are counted.
        """
        while True:
            done = await self._batch(namespace)
            waiting = await self.waiting(namespace)
            if progress is not None:
                progress(waiting)
            if waiting == 0 or (done == 0 and self._embedder is None):
                return
            if done == 0:
                await asyncio.sleep(FLUSH_POLL_SECONDS)

    async def waiting(self, namespace: str) -> int:
        """How many passages of a namespace are still to be indexed."""
        async with self._database.reading(namespace) as db:
            return await self._passages.waiting(db, MAX_WAITING)

    async def _run(self) -> None:
        failures = 0
        while True:
            self._work.clear()
            try:
                done = await self.round()
                failures = 0
            except RecollectError as problem:
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                _log.warning("Indexing is interrupted and goes on in %s s: %s", pause, problem)
                await asyncio.sleep(pause)
                continue
            if done == 0:
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        try:
            await asyncio.wait_for(self._work.wait(), POLL_SECONDS)
        except TimeoutError:
            return

    async def _batch(self, namespace: str) -> int:
        async with self._database.transaction(namespace) as tx:
            if self._embedder is None:
                claims = await self._passages.claim(tx, BATCH_WITHOUT_MODEL, with_model=False)
                if claims:
                    await self._passages.count_only(tx, claims)
                return len(claims)
            claims = await self._passages.claim(tx, BATCH, with_model=True)
            if claims:
                vectors = await self._embedder.embed_documents([claim.text for claim in claims])
                await self._passages.complete(tx, claims, self._embedder.model_id, list(map(as_text, vectors)))
        self._indexed(namespace)
        return len(claims)
