"""FactWriter: stores the memories that another program kept, each under its key in place of an earlier one."""

from collections.abc import Sequence

from recollect import tasks, trust
from recollect.flows.capabilities import Capabilities
from recollect.flows.indexing.namespace_models import Embedding
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.flows.long_term.memory_writer import MemoryWriter, superseding
from recollect.flows.transfer.foreign.message_writer import Stored
from recollect.flows.transfer.foreign.pieces import Fact
from recollect.language.sameness import gist
from recollect.memory.changes import Change
from recollect.memory.index.passages import analysing
from recollect.memory.memories import Draft, Identity, MemoryScope
from recollect.steps import in_steps
from recollect.storage.database import Database

CATEGORY = "fact"


class FactWriter:
    """Writes the memories of one import, each in its own transaction: there are few."""

    def __init__(
        self,
        database: Database,
        memory: Capabilities,
        passage_writer: PassageWriter,
        namespace: str,
        *,
        dry_run: bool,
    ) -> None:
        self._database = database
        self._memory = memory
        self._writer = MemoryWriter(memory.memories, memory.passages, memory.held, passage_writer)
        self._namespace = namespace
        self._dry_run = dry_run

    async def store(self, batch: Sequence[Fact]) -> Stored:
        """Store memories that were not stored before; one that was, and was replaced since, does not come back."""
        async with self._database.reading(self._namespace) as db:
            known = await self._memory.memories.find(db, [fact.id for fact in batch])
        stored = Stored()
        for fact in batch:
            is_new = fact.id not in known and (self._dry_run or await self._add(fact))
            (stored.added if is_new else stored.known)["memory"] += 1
        return stored

    async def _add(self, fact: Fact) -> bool:
        """Whether it is new; not so if another of its scope says the same."""
        scope = MemoryScope(fact.user_id, fact.agent_id, None)
        identity = Identity.of(scope, CATEGORY, await tasks.in_thread(gist, fact.text))
        draft = Draft(
            scope,
            CATEGORY,
            fact.text,
            dict(fact.metadata),
            identity,
            identity,
            fact.at,
            key=fact.key,
            id=fact.id,
            trust=trust.IMPORT,
        )
        # The indexer embeds them with all the rest.
        prepared = Prepared(tuple(await in_steps(analysing(fact.text))), Embedding(None))
        async with self._database.transaction(self._namespace) as tx:
            added, replaced = await self._writer.add(tx, draft, prepared, [])
            if added is None:
                return False
            changes = [Change("import", "memory", str(added.id)), *superseding(added, replaced)]
            await self._memory.changes.record(tx, changes)
        return True
