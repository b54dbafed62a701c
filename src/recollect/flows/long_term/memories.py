"""Long-term memory: one call creates one memory, which is found at once and has a history of changes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypeVar
from uuid import UUID

from recollect import checks, tasks, telemetry, trust
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.defence.provenance import Provenance
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.long_term.condense import MAX_CONDENSED_CHARACTERS, Condensed, condense, verbatim
from recollect.flows.long_term.echoes import Echoes
from recollect.flows.long_term.memory_ids import as_uuid, existing, require_since, unknown
from recollect.flows.long_term.memory_requests import Change, Chosen, Options, check_scope
from recollect.flows.long_term.memory_results import Added, Deleted, Page, Written
from recollect.flows.long_term.memory_search import MemorySearch, in_force
from recollect.flows.long_term.memory_writer import Additions, MemoryWriter, Replaced, stored_trust, superseding
from recollect.flows.named_items import NamedItems
from recollect.flows.search.recall import Recall
from recollect.inference.llm import Llm
from recollect.language.sameness import gist
from recollect.memory import changes
from recollect.memory.index.held import Held
from recollect.memory.index.passages import Passages
from recollect.memory.memories import (
    CATEGORIES,
    EXPIRE,
    Draft,
    HistoryEntry,
    Identity,
    Memories,
    MemoryScope,
    Place,
    StoredMemory,
)
from recollect.origin import Origin, own_work, require
from recollect.storage.database import Database, Transaction
from recollect.storage.failures import Contended, Duplicate

MAX_LISTED = 1000

# Memories of the same scope that a model compares a new one with, and how many are searched to find them.
COMPARED = 5
LOOKED_AT = 50
_ASKED_CHARACTERS = 2_000
# Only concurrent writes to the same memory need a second attempt.
_ATTEMPTS = 5
# Memories that expire in one transaction.
SWEPT_AT_ONCE = 100
EXPIRED = {"because": "expired"}
# Whoever's request removes what has expired did not end it.
_NOBODY = Origin("library")

Result = TypeVar("Result")


class LongTermMemory(MemorySearch, MasksSecrets):
    """Keeps memories of users, agents and sessions, each found by keyword and semantic search."""

    def __init__(
        self,
        database: Database,
        memories: Memories,
        passages: Passages,
        held: Held,
        passage_writer: PassageWriter,
        recall: Recall,
        feed: changes.Changes,
        named_items: NamedItems,
        llm: Llm | None,
    ) -> None:
        super().__init__(database, memories, recall)
        self._passage_writer = passage_writer
        self._writer = MemoryWriter(memories, passages, held, passage_writer)
        self._changes = feed
        self._named_items = named_items
        self._echoes = Echoes(database, memories, self.nearest)
        self._provenance = Provenance(database, passages, held)
        self._llm = llm

    @telemetry.memory_operation("create_memory")
    @masks("text", "metadata", "recalled", "options")
    async def add(
        self,
        namespace: str,
        text: str,
        category: str,
        scope: MemoryScope,
        metadata: Mapping[str, Any] | None = None,
        recalled: Sequence[str] = (),
        at: datetime | None = None,
        options: Options | None = None,
        condensed: Condensed | None = None,
    ) -> Added:
        """Store one memory, unless its scope has it already, or it only repeats what was recalled into a prompt.

        Metadata and options that are new to the memory that exists become its own. `recalled` are texts or ids of
        memories. With a language model the memory is one sentence of it, unless the caller knows what to store.
        """
        require("write")
        checks.text(text, "messages")
        checks.one_of(category, CATEGORIES, "category")
        scope = check_scope(scope)
        if scope.session_id is not None:
            refuse_stored_chat(scope.session_id)
        checks.metadata(metadata)
        said_at = checks.storable_utc(at, "at")
        options = (options or Options()).checked()
        sources = await self._named_items.required(namespace, options.sources)
        replaced = await self._named(namespace, scope, options)
        of_sources = await self._provenance.lowest(namespace, sources)
        additions = Additions(metadata or {}, options.details(), replaced, sources, of_sources)
        origin = Identity.of(scope, category, await _gist(text))
        if known := await self._known(namespace, origin, origin, additions):
            return known
        if echoed := await self._echoes.of(namespace, text, scope, recalled):
            return Added(echoed, "echo")
        condensed = condensed or await self._condensed(namespace, text, scope)
        same = condensed.same if condensed.same and condensed.same.category == category else None
        if same and (known := await self._merged(namespace, same, additions)):
            return known
        identity = Identity.of(scope, category, await _gist(condensed.text))
        kept = {**(metadata or {}), **condensed.metadata}
        draft = Draft(
            scope,
            category,
            condensed.text,
            kept,
            identity,
            origin,
            said_at,
            **options.details(),
            sources=tuple(sources),
            detail=condensed.origin_of(text),
            trust=stored_trust([trust.of_item(MEMORY, None, options.trust), *([of_sources] if of_sources else [])]),
        )
        added = await self._stored(namespace, draft, [*replaced, *condensed.replaced()], additions)
        reasons = [reason for reason in (condensed.degraded, added.degraded) if reason]
        return replace(added, degraded=" ".join(reasons) or None) if added.what == "created" else added

    async def newest(
        self,
        namespace: str,
        scope: MemoryScope | None = None,
        limit: int = 100,
        behind: Place | None = None,
        chosen: Chosen | None = None,
    ) -> Page:
        """Memories, newest first; pages do not shift when others are added meanwhile."""
        checks.between(limit, 1, MAX_LISTED, "limit")
        scope = check_scope(scope or MemoryScope(), needed=False)
        only = (chosen or Chosen()).checked()
        async with self._database.searching(namespace) as db:
            page = await self._memories.newest(db, scope, only, limit + 1, behind)
        last = page[limit - 1] if len(page) > limit else None
        return Page(page[:limit], None if last is None else Place(last.created_at, last.id))

    async def get(self, namespace: str, memory_id: str, as_of: datetime | None = None) -> StoredMemory:
        """One memory, whether it is in force or superseded; with `as_of`, as it was then."""
        wanted = as_uuid(memory_id)
        moment = checks.as_of(as_of)
        async with self._database.reading(namespace) as db:
            found = await self._memories.find(db, [wanted], moment)
        if moment is not None and wanted not in found:
            raise NotFound(f"No memory {wanted} was known at {moment.isoformat()}")
        return existing(found, wanted)

    @telemetry.memory_operation("update_memory")
    @masks("change")
    async def update(self, namespace: str, memory_id: str, change: Change, if_since: datetime | None = None) -> Written:
        """Give a memory another text, category or metadata; it is found by the new ones only.

        With `if_since`, only if it has not changed since then.
        """
        change = change.checked()
        memory = await self.get(namespace, memory_id)
        for _ in range(_ATTEMPTS):
            changed = await self._changed(namespace, memory, change, if_since)
            if changed is not None:
                return changed
            memory = await self.get(namespace, memory_id)
        raise Conflict(f"Memory {memory.id} is being changed by another request: try again")

    async def _changed(
        self, namespace: str, seen: StoredMemory, change: Change, if_since: datetime | None
    ) -> Written | None:
        """The memory after a change; None if its text was changed by somebody else since it was seen."""
        new = change.of(seen)
        said = None if change.text is None and change.category is None else await _gist(new.text)
        prepared = await self._passage_writer.prepare(namespace, new.text)

        async def write() -> StoredMemory | None:
            async with self._database.transaction(namespace) as tx:
                memory = existing(await self._memories.lock(tx, [seen.id]), seen.id)
                require_since(memory, if_since)
                if memory.superseded_by is not None:
                    raise Conflict(
                        f"Memory {seen.id} is superseded by {memory.superseded_by}: undo that, or change the newer one"
                    )
                if change.text is None and memory.text != seen.text:
                    return None
                changed, superseded = await self._writer.change(tx, memory, change.of(memory), prepared, said)
                await self._record(tx, "update", changed, superseded)
                return changed

        try:
            changed = await self._retried(namespace, write)
        except Duplicate as clash:
            if said is None:
                raise
            raise await self._explained(namespace, clash, new, said) from clash
        if changed is None:
            return None
        self._passage_writer.committed(namespace, prepared)
        return Written(changed, prepared.degraded)

    @telemetry.memory_operation("delete_memory")
    async def delete(
        self, namespace: str, memory_id: str, *, restore: bool = False, if_since: datetime | None = None
    ) -> Deleted:
        """Permanently delete a memory; its history stays, without its text.

        What it had superseded stays superseded, unless it is to be restored in the same transaction.
        """
        wanted = as_uuid(memory_id)
        async with self._database.reading(namespace) as db:
            replaced = await self._memories.replaced_by(db, wanted)
        if not restore:
            await self._retried(namespace, lambda: self._remove(namespace, wanted, {}, if_since))
            return Deleted(wanted, tuple(memory.id for memory in replaced), ())
        # A superseded memory never changes, so this stays valid until the transaction.
        prepared = {memory.id: await self._passage_writer.prepare(namespace, memory.text) for memory in replaced}
        try:
            restored = await self._retried(namespace, lambda: self._remove(namespace, wanted, prepared, if_since))
        except Duplicate as clash:
            raise Conflict(
                f"Some memories that memory {wanted} superseded now have duplicates, so not all can be restored: "
                "delete it without restore, then undo individual memories"
            ) from clash
        return Deleted(wanted, tuple(memory.id for memory in replaced if memory.id not in restored), tuple(restored))

    async def _remove(
        self, namespace: str, wanted: UUID, predecessors: Mapping[UUID, Prepared], if_since: datetime | None
    ) -> list[UUID]:
        """Delete a memory and restore its predecessors; returns those that are in force afterwards.

        Of two with the same key, the newer one supersedes the older.
        """
        restored: list[UUID] = []
        async with self._database.transaction(namespace) as tx:
            locked = await self._memories.lock(tx, [wanted, *predecessors])
            require_since(existing(locked, wanted), if_since)
            await self._writer.remove(tx, [wanted], "delete")
            recorded = [changes.Change("delete", MEMORY, str(wanted))]
            for memory in locked.values():
                if memory.superseded_by == wanted:
                    back, superseded = await self._writer.reinstate(tx, memory, predecessors[memory.id])
                    restored = [*(each for each in restored if each not in superseded), back.id]
                    recorded.append(changes.Change("update", MEMORY, str(memory.id), {"restored": True}))
                    recorded += superseding(back, superseded)
            await self._changes.record(tx, recorded)
        for prepared in predecessors.values():
            self._passage_writer.committed(namespace, prepared)
        return restored

    async def sweep(self, namespace: str, *, once: bool = False) -> int:
        """Remove expired memories with their past versions; returns how many there were.

        With `once`, only as many as one transaction removes.
        """
        removed = 0
        while True:
            with own_work():
                async with self._database.transaction(namespace) as tx:
                    expired = await self._memories.expired(tx, SWEPT_AT_ONCE)
                    gone = await self._writer.remove(tx, expired, EXPIRE) if expired else []
                    recorded = [changes.Change("delete", MEMORY, str(each), EXPIRED, by=_NOBODY) for each in gone]
                    await self._changes.record(tx, recorded)
            removed += len(gone)
            if once or len(expired) < SWEPT_AT_ONCE:
                return removed

    async def history(self, namespace: str, memory_id: str) -> list[HistoryEntry]:
        """What happened to a memory, oldest first, even if it was deleted."""
        wanted = as_uuid(memory_id)
        async with self._database.reading(namespace) as db:
            entries = await self._memories.history(db, wanted)
        if not entries:
            raise unknown(memory_id)
        return entries

    async def undo(self, namespace: str, memory_id: str, if_since: datetime | None = None) -> Written:
        """Restore a superseded memory. The memory that has its key now is superseded; any other successor stays."""
        memory = await self.get(namespace, memory_id)
        said, prepared = await asyncio.gather(_gist(memory.text), self._passage_writer.prepare(namespace, memory.text))

        async def write() -> StoredMemory:
            async with self._database.transaction(namespace) as tx:
                locked = existing(await self._memories.lock(tx, [memory.id]), memory.id)
                require_since(locked, if_since)
                if locked.superseded_by is None:
                    raise Invalid(f"Memory {memory.id} is not superseded: there is nothing to undo")
                restored, superseded = await self._writer.reinstate(tx, locked, prepared)
                await self._record(tx, "update", restored, superseded, {"restored": True})
                return restored

        try:
            restored = await self._retried(namespace, write)
        except Duplicate as clash:
            raise await self._explained(namespace, clash, memory, said) from clash
        self._passage_writer.committed(namespace, prepared)
        return Written(restored, prepared.degraded)

    async def bring_back(self, namespace: str, memory_id: str) -> None:
        """Restore what a memory took the place of, unless another has taken its own place since.

        What has a duplicate in force is not missing, and stays as it is.
        """
        wanted = as_uuid(memory_id)
        async with self._database.reading(namespace) as db:
            memory = (await self._memories.find(db, [wanted])).get(wanted)
            replaced = await self._memories.replaced_by(db, wanted)
        if memory is None or memory.superseded_by is not None:
            return
        for each in replaced:
            with suppress(Duplicate):
                await self.undo(namespace, str(each.id))

    async def _retried(self, namespace: str, write: Callable[[], Awaitable[Result]]) -> Result:
        """Write, and again after a conflict with another writer, or with a duplicate: that may have expired."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await write()
            except Contended:
                continue
            except Duplicate:
                await self.sweep(namespace)
        return await write()

    async def _stored(self, namespace: str, draft: Draft, replaced: Sequence[Replaced], additions: Additions) -> Added:
        prepared = await self._passage_writer.prepare(namespace, draft.text)
        for _ in range(_ATTEMPTS):
            memory, superseded = None, list[UUID]()
            with suppress(Duplicate, Contended):  # another request has just taken the key: this one comes after it
                async with self._database.transaction(namespace) as tx:
                    memory, superseded = await self._writer.add(tx, draft, prepared, replaced)
                    if memory is not None:
                        await self._record(tx, "add", memory, superseded)
            if memory is not None:
                self._passage_writer.committed(namespace, prepared)
                return Added(memory, "created", tuple(superseded), prepared.degraded)
            if known := await self._known(namespace, draft.identity, draft.origin, additions):
                return known
            # What stands in the way has expired.
            await self.sweep(namespace)
        raise Conflict("Other requests are writing or deleting the same memory or key: try again")

    async def _record(
        self,
        tx: Transaction,
        event: Literal["add", "update"],
        memory: StoredMemory,
        superseded: Sequence[UUID],
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a write and what it superseded; must be the last statement of the transaction."""
        recorded = [*superseding(memory, superseded), changes.Change(event, MEMORY, str(memory.id), detail)]
        await self._changes.record(tx, recorded)

    async def _named(self, namespace: str, scope: MemoryScope, options: Options) -> list[Replaced]:
        """The memories that a caller wants replaced; refused if one is not of the same scope, or not in force."""
        if not options.supersedes:
            return []
        ids = list(dict.fromkeys(map(as_uuid, options.supersedes)))
        async with self._database.reading(namespace) as db:
            found = await self._memories.find(db, ids)
        for memory_id in ids:
            memory = existing(found, memory_id)
            if memory.scope != scope:
                raise Invalid(
                    f"Memory {memory_id} belongs to another scope and cannot be superseded from this one: "
                    "pass the same user_id, agent_id and session_id"
                )
            if memory.superseded_by is not None:
                raise Conflict(f"Memory {memory_id} is superseded by {memory.superseded_by} already: name that one")
        return [Replaced(memory_id, {"because": "request"}, if_since=options.if_since) for memory_id in ids]

    async def _condensed(self, namespace: str, text: str, scope: MemoryScope) -> Condensed:
        """One sentence of the language model, compared with similar memories; else the text as it is."""
        if self._llm is None or len(text) > MAX_CONDENSED_CHARACTERS:
            return verbatim(text)
        near = [memory for memory in await self.nearest(namespace, text, scope) if memory.scope == scope]
        return await condense(self._llm, namespace, text, near[:COMPARED])

    async def nearest(self, namespace: str, text: str, scope: MemoryScope) -> list[StoredMemory]:
        """Memories in force that a new one may be compared with, the nearest first."""
        question = text[:_ASKED_CHARACTERS]
        if not checks.has_words(question):
            return []
        try:
            near = await self.search(namespace, question, scope, limit=LOOKED_AT)
        except NotSearched:
            return []  # a new memory is stored all the same, compared with none
        return [found.memory for found in near]

    async def _same(self, namespace: str, identity: Identity, origin: Identity) -> StoredMemory | None:
        async with self._database.reading(namespace) as db:
            return await self._memories.same(db, identity, origin)

    async def _known(self, namespace: str, identity: Identity, origin: Identity, additions: Additions) -> Added | None:
        same = await self._same(namespace, identity, origin)
        return None if same is None else await self._merged(namespace, same, additions)

    async def _merged(self, namespace: str, memory: StoredMemory, additions: Additions) -> Added | None:
        """An existing memory with what this caller adds to it; None if it has gone meanwhile."""
        if additions.is_part_of(memory):
            return Added(memory, "existing")
        prepared = await self._passage_writer.prepare(namespace, memory.text)

        async def write() -> Added | None:
            async with self._database.transaction(namespace) as tx:
                locked = (await self._memories.lock(tx, [memory.id])).get(memory.id)
                if locked is None or not in_force(locked) or locked.text != memory.text:
                    return None
                if additions.is_part_of(locked):
                    return Added(locked, "existing")
                merged = additions.merged_into(locked)
                changed, superseded = await self._writer.change(
                    tx, locked, merged, prepared, replaced=additions.replaced
                )
                await self._record(tx, "update", changed, superseded)
                return Added(changed, "merged", tuple(superseded), prepared.degraded)

        added = await self._retried(namespace, write)
        if added is not None and added.what == "merged":
            self._passage_writer.committed(namespace, prepared)
        return added

    async def _explained(self, namespace: str, clash: Duplicate, memory: StoredMemory, said: str) -> Conflict:
        """The conflict that names the duplicate of a memory in its scope, if there is one."""
        identity = Identity.of(memory.scope, memory.category, said)
        same = await self._same(namespace, identity, identity)
        if same is None or same.id == memory.id:
            return clash
        return Duplicate(f"Memory {same.id} in the same scope is a duplicate: delete one of the two")


async def _gist(text: str) -> str:
    return await tasks.in_thread(gist, text) if len(text) > _ASKED_CHARACTERS else gist(text)
