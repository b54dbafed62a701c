"""Long-term memory: one call creates one memory, which is found at once and has a history of changes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypeVar
from uuid import UUID

from recollect import checks, tasks, telemetry
from recollect.errors import Conflict, Invalid, NotFound
from recollect.flows.chat_ids import refuse_stored_chat
from recollect.flows.indexing.namespace_models import NotSearched
from recollect.flows.indexing.passage_writer import PassageWriter, Prepared
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.long_term.condense import MAX_CONDENSED_CHARACTERS, condense, verbatim
from recollect.flows.long_term.memory_ids import as_uuid, existing, is_uuid, unknown
from recollect.flows.long_term.memory_requests import Change, Chosen, Options, check_scope
from recollect.flows.long_term.memory_results import Added, Deleted, FoundMemory, Page, Written
from recollect.flows.long_term.memory_writer import MemoryWriter, More, Replaced, superseding
from recollect.flows.named_items import NamedItems
from recollect.flows.results import Results
from recollect.flows.search.recall import MAX_TOP_K, NOMINEES, Recall
from recollect.flows.search.relevance import Floor
from recollect.inference.llm import Llm
from recollect.language.sameness import gist, sayings
from recollect.memory import changes
from recollect.memory.index.passages import Passages
from recollect.memory.index.search import Scope
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
from recollect.origin import Origin
from recollect.storage.database import Database, Transaction
from recollect.storage.failures import Contended, Duplicate

MAX_LISTED = 1000
MAX_RECALLED = 1000

# Memories that each leg nominates for one that is asked for: the best of both are not the best of either.
NOMINATED_EACH = 2
# Memories of the same scope that a model compares a new one with, and how many are looked at to find them.
COMPARED = 5
LOOKED_AT = 50
_ASKED_CHARACTERS = 2_000
# Only others who write to the same memory at the same moment make a second attempt necessary.
_ATTEMPTS = 5
# Memories that expire in one transaction.
SWEPT_AT_ONCE = 100
EXPIRED = {"because": "expired"}
# Whoever's request removes what has expired did not end it.
_NOBODY = Origin("library")

Result = TypeVar("Result")


class LongTermMemory:
    """Keeps memories of users, agents and sessions, each found by keyword and semantic search."""

    def __init__(
        self,
        database: Database,
        memories: Memories,
        passages: Passages,
        passage_writer: PassageWriter,
        recall: Recall,
        feed: changes.Changes,
        named_items: NamedItems,
        llm: Llm | None,
    ) -> None:
        self._database = database
        self._memories = memories
        self._passage_writer = passage_writer
        self._writer = MemoryWriter(memories, passages, passage_writer)
        self._recall = recall
        self._changes = feed
        self._named_items = named_items
        self._llm = llm

    @telemetry.memory_operation("create_memory")
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
    ) -> Added:
        """Store one memory, unless its scope has it already, or it only repeats what was recalled into a prompt.

        Metadata and options that are new to the memory that exists become its own.
        `recalled` are texts or ids of memories; `at` is when it was said. With a language model the memory is one
        sentence of it.
        """
        checks.text(text, "messages")
        checks.one_of(category, CATEGORIES, "category")
        check_scope(scope, needed=True)
        if scope.session_id is not None:
            refuse_stored_chat(scope.session_id)
        checks.metadata(metadata)
        said_at = checks.storable_utc(at, "at")
        options = (options or Options()).checked()
        sources = await self._named_items.required(namespace, options.sources)
        replaced = await self._named(namespace, scope, options.supersedes)
        more = More(metadata or {}, options.details(), replaced, sources)
        origin = Identity.of(scope, category, await _gist(text))
        if known := await self._known(namespace, origin, origin, more):
            return known
        if echoed := await self._echoed(namespace, text, scope, recalled):
            return Added(echoed, "echo")
        condensed = verbatim(text)
        if self._llm is not None and len(text) <= MAX_CONDENSED_CHARACTERS:
            near = [memory for memory in await self._nearest(namespace, text, scope) if memory.scope == scope]
            condensed = await condense(self._llm, namespace, text, near[:COMPARED])
        same = condensed.same if condensed.same and condensed.same.category == category else None
        if same and (known := await self._with_more(namespace, same, more)):
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
        )
        added = await self._stored(namespace, draft, [*replaced, *condensed.replaced()], more)
        reasons = [reason for reason in (condensed.degraded, added.degraded) if reason]
        return replace(added, degraded=" ".join(reasons) or None) if added.what == "created" else added

    async def search(
        self,
        namespace: str,
        query: str,
        scope: MemoryScope,
        chosen: Chosen | None = None,
        limit: int = 100,
        *,
        min_relevance: Floor | None = None,
        half_life_days: float | None = None,
    ) -> Results[FoundMemory]:
        """Memories that answer a question, in the order of recall, each with its own whole text."""
        checks.between(limit, 1, MAX_TOP_K, "limit")
        check_scope(scope, needed=True)
        only = (chosen or Chosen()).checked()
        searched = Scope(
            scope.user_id,
            scope.agent_id,
            scope.session_id,
            (MEMORY,),
            only.categories,
            only.since,
            only.until,
            only.metadata,
            as_of=only.as_of,
            valid_at=only.valid_at,
        )
        # Two memories that read alike to recall are two all the same: they were kept apart when they were stored.
        found = await self._recall.recall(
            namespace,
            query,
            searched,
            top_k=limit,
            fold=False,
            nominees=max(NOMINEES, NOMINATED_EACH * limit),
            min_relevance=min_relevance,
            half_life_days=half_life_days,
        )
        async with self._database.reading(namespace) as db:
            stored = await self._memories.find(db, [UUID(item.id) for item in found.memories], only.as_of)
        hits = ((stored.get(UUID(item.id)), item.similarity) for item in found.memories)
        in_force = (FoundMemory(memory, score) for memory, score in hits if memory is not None and _in_force(memory))
        return Results(in_force, found.degraded)

    async def newest(
        self,
        namespace: str,
        scope: MemoryScope | None = None,
        limit: int = 100,
        behind: Place | None = None,
        chosen: Chosen | None = None,
    ) -> Page:
        """Memories, newest first; pages do not shift when others are added meanwhile."""
        scope = scope or MemoryScope()
        checks.between(limit, 1, MAX_LISTED, "limit")
        check_scope(scope, needed=False)
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
    async def update(self, namespace: str, memory_id: str, change: Change) -> Written:
        """Give a memory another text, category or metadata; it is found by the new ones only."""
        change = change.checked()
        memory = await self.get(namespace, memory_id)
        for _ in range(_ATTEMPTS):
            changed = await self._changed(namespace, memory, change)
            if changed is not None:
                return changed
            memory = await self.get(namespace, memory_id)
        raise Conflict(f"Memory {memory.id} is being changed by another request: try again")

    async def _changed(self, namespace: str, seen: StoredMemory, change: Change) -> Written | None:
        """The memory after a change; None if its text was changed by somebody else since it was seen."""
        new = change.of(seen)
        said = None if change.text is None and change.category is None else await _gist(new.text)
        prepared = await self._passage_writer.prepare(namespace, new.text)

        async def write() -> StoredMemory | None:
            async with self._database.transaction(namespace) as tx:
                memory = existing(await self._memories.lock(tx, [seen.id]), seen.id)
                if memory.superseded_by is not None:
                    raise Conflict(
                        f"Memory {seen.id} is superseded by {memory.superseded_by}: undo that, or change the newer one"
                    )
                if change.text is None and memory.text != seen.text:
                    return None
                changed, superseded = await self._writer.change(tx, memory, change.of(memory), prepared, said)
                await self._tell(tx, "update", changed, superseded)
                return changed

        try:
            changed = await self._unhindered(namespace, write)
        except Conflict as clash:
            if said is None:
                raise
            raise await self._explained(namespace, clash, new, said) from clash
        if changed is None:
            return None
        self._passage_writer.committed(namespace, prepared)
        return Written(changed, prepared.degraded)

    @telemetry.memory_operation("delete_memory")
    async def delete(self, namespace: str, memory_id: str, *, restore: bool = False) -> Deleted:
        """Remove a memory for good; its history stays, without its text.

        What it had superseded stays out of force, unless it is to be restored in the same transaction.
        """
        wanted = as_uuid(memory_id)
        async with self._database.reading(namespace) as db:
            replaced = await self._memories.replaced_by(db, wanted)
        ids = tuple(memory.id for memory in replaced)
        if not restore:
            await self._unhindered(namespace, lambda: self._removed(namespace, wanted, {}))
            return Deleted(wanted, ids, ())
        # A superseded memory never changes, so that this holds until the transaction.
        prepared = {memory.id: await self._passage_writer.prepare(namespace, memory.text) for memory in replaced}
        try:
            await self._unhindered(namespace, lambda: self._removed(namespace, wanted, prepared))
        except Conflict as clash:
            raise Conflict(
                f"Some memories that memory {wanted} superseded now have duplicates, so not all can be restored: "
                "delete it without restore, then undo individual memories"
            ) from clash
        return Deleted(wanted, (), ids)

    async def _removed(self, namespace: str, wanted: UUID, restored: Mapping[UUID, Prepared]) -> None:
        async with self._database.transaction(namespace) as tx:
            held = await self._memories.lock(tx, [wanted, *restored])
            existing(held, wanted)
            await self._writer.remove(tx, [wanted], "delete")
            told = [changes.Change("delete", MEMORY, str(wanted))]
            for memory in held.values():
                if memory.superseded_by == wanted:
                    back, superseded = await self._writer.reinstate(tx, memory, restored[memory.id])
                    told.append(changes.Change("update", MEMORY, str(memory.id), {"restored": True}))
                    told += superseding(back, superseded)
            await self._changes.record(tx, told)
        for prepared in restored.values():
            self._passage_writer.committed(namespace, prepared)

    async def sweep(self, namespace: str, *, once: bool = False) -> int:
        """Remove memories whose time is over, with all that they ever said; returns how many there were.

        With `once`, only as many as leave in one transaction.
        """
        removed = 0
        while True:
            async with self._database.transaction(namespace) as tx:
                over = await self._memories.expired(tx, SWEPT_AT_ONCE)
                gone = await self._writer.remove(tx, over, EXPIRE) if over else []
                told = [changes.Change("delete", MEMORY, str(each), EXPIRED, by=_NOBODY) for each in gone]
                await self._changes.record(tx, told)
            removed += len(gone)
            if once or len(over) < SWEPT_AT_ONCE:
                return removed

    async def history(self, namespace: str, memory_id: str) -> list[HistoryEntry]:
        """What happened to a memory, also to one that is deleted, in order."""
        wanted = as_uuid(memory_id)
        async with self._database.reading(namespace) as db:
            entries = await self._memories.history(db, wanted)
        if not entries:
            raise unknown(memory_id)
        return entries

    async def undo(self, namespace: str, memory_id: str) -> Written:
        """Bring back a memory that another one superseded; the other one stays, too."""
        memory = await self.get(namespace, memory_id)
        said, prepared = await asyncio.gather(_gist(memory.text), self._passage_writer.prepare(namespace, memory.text))

        async def write() -> StoredMemory:
            async with self._database.transaction(namespace) as tx:
                held = existing(await self._memories.lock(tx, [memory.id]), memory.id)
                if held.superseded_by is None:
                    raise Invalid(f"Memory {memory.id} is not superseded: there is nothing to undo")
                restored, superseded = await self._writer.reinstate(tx, held, prepared)
                await self._tell(tx, "update", restored, superseded, {"restored": True})
                return restored

        try:
            restored = await self._unhindered(namespace, write)
        except Conflict as clash:
            raise await self._explained(namespace, clash, memory, said) from clash
        self._passage_writer.committed(namespace, prepared)
        return Written(restored, prepared.degraded)

    async def _unhindered(self, namespace: str, write: Callable[[], Awaitable[Result]]) -> Result:
        """Write, and again after a clash: what stood in the way may have expired, or may give way by now."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await write()
            except Contended:
                continue
            except Duplicate:
                await self.sweep(namespace)
        return await write()

    async def _stored(self, namespace: str, draft: Draft, replaced: Sequence[Replaced], more: More) -> Added:
        prepared = await self._passage_writer.prepare(namespace, draft.text)
        for _ in range(_ATTEMPTS):
            memory, superseded = None, list[UUID]()
            with suppress(Duplicate, Contended):  # another request has just taken the key: this one comes after it
                async with self._database.transaction(namespace) as tx:
                    memory, superseded = await self._writer.add(tx, draft, prepared, replaced)
                    if memory is not None:
                        await self._tell(tx, "add", memory, superseded)
            if memory is not None:
                self._passage_writer.committed(namespace, prepared)
                return Added(memory, "created", tuple(superseded), prepared.degraded)
            if known := await self._known(namespace, draft.identity, draft.origin, more):
                return known
            # What stands in the way has expired.
            await self.sweep(namespace)
        raise Conflict("Other requests are writing or deleting the same memory or key: try again")

    async def _tell(
        self,
        tx: Transaction,
        event: Literal["add", "update"],
        memory: StoredMemory,
        superseded: Sequence[UUID],
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Record what happened, as the last thing that the transaction does."""
        told = [*superseding(memory, superseded), changes.Change(event, MEMORY, str(memory.id), detail)]
        await self._changes.record(tx, told)

    async def _named(self, namespace: str, scope: MemoryScope, supersedes: Sequence[str]) -> list[Replaced]:
        """The memories that a caller wants replaced; refused if one is not of the same scope, or not in force."""
        if not supersedes:
            return []
        ids = list(dict.fromkeys(map(as_uuid, supersedes)))
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
        return [Replaced(memory_id, {"because": "request"}) for memory_id in ids]

    async def _nearest(self, namespace: str, text: str, scope: MemoryScope) -> list[StoredMemory]:
        question = text[:_ASKED_CHARACTERS]
        if not checks.has_words(question):
            return []
        try:
            near = await self.search(namespace, question, scope, limit=LOOKED_AT)
        except NotSearched:
            return []  # a new memory is stored all the same, compared with none
        return [found.memory for found in near]

    async def _echoed(
        self, namespace: str, text: str, scope: MemoryScope, recalled: Sequence[str]
    ) -> StoredMemory | None:
        """The memory that a text repeats, if it says nothing besides what was recalled."""
        if not recalled:
            return None
        checks.between(len(recalled), 1, MAX_RECALLED, "the number of recalled texts")
        ids = {entry: as_uuid(entry) for entry in recalled if is_uuid(entry)}
        async with self._database.reading(namespace) as db:
            named = await self._memories.find(db, list(ids.values()))
        own = [memory for memory in named.values() if memory.superseded_by is None and _may_see(scope, memory)]
        texts = [*(entry for entry in recalled if entry not in ids), *(memory.text for memory in own)]
        said = await tasks.in_thread(sayings, text)
        known = await tasks.in_thread(lambda: frozenset[str]().union(*map(sayings, texts)))
        if not said or not said <= known:
            return None
        widest = MemoryScope(user_id=scope.user_id) if scope.user_id is not None else scope
        near = [memory for memory in await self._nearest(namespace, text, widest) if _may_see(scope, memory)]
        # What was recalled need not be a memory. Then this is the first time that it becomes one.
        return next((memory for memory in [*own, *near] if not said.isdisjoint(sayings(memory.text))), None)

    async def _same(self, namespace: str, identity: Identity, origin: Identity) -> StoredMemory | None:
        async with self._database.reading(namespace) as db:
            return await self._memories.same(db, identity, origin)

    async def _known(self, namespace: str, identity: Identity, origin: Identity, more: More) -> Added | None:
        same = await self._same(namespace, identity, origin)
        return None if same is None else await self._with_more(namespace, same, more)

    async def _with_more(self, namespace: str, memory: StoredMemory, more: More) -> Added | None:
        """A memory that exists, with what this caller knows of it besides; None if it is gone by now."""
        if more.is_part_of(memory):
            return Added(memory, "existing")
        prepared = await self._passage_writer.prepare(namespace, memory.text)

        async def write() -> Added | None:
            async with self._database.transaction(namespace) as tx:
                held = (await self._memories.lock(tx, [memory.id])).get(memory.id)
                if held is None or not _in_force(held) or held.text != memory.text:
                    return None
                if more.is_part_of(held):
                    return Added(held, "existing")
                merged = more.merged_into(held)
                changed, superseded = await self._writer.change(tx, held, merged, prepared, replaced=more.replaced)
                await self._tell(tx, "update", changed, superseded)
                return Added(changed, "merged", tuple(superseded), prepared.degraded)

        added = await self._unhindered(namespace, write)
        if added is not None and added.what == "merged":
            self._passage_writer.committed(namespace, prepared)
        return added

    async def _explained(self, namespace: str, clash: Conflict, memory: StoredMemory, said: str) -> Conflict:
        """What a clash is about: another memory of the same scope that says the same, if it is that."""
        identity = Identity.of(memory.scope, memory.category, said)
        same = await self._same(namespace, identity, identity)
        if same is None or same.id == memory.id:
            return clash
        return Conflict(f"Memory {same.id} in the same scope is a duplicate: delete one of the two")


async def _gist(text: str) -> str:
    return await tasks.in_thread(gist, text) if len(text) > _ASKED_CHARACTERS else gist(text)


def _may_see(scope: MemoryScope, memory: StoredMemory) -> bool:
    """Whether a memory is of the same user, or of no user and of no other agent or session."""
    if scope.user_id is not None and memory.user_id is not None:
        return memory.user_id == scope.user_id
    return (
        memory.user_id is None
        and memory.agent_id in (None, scope.agent_id)
        and memory.session_id in (None, scope.session_id)
    )


def _in_force(memory: StoredMemory) -> bool:
    return memory.superseded_by is None
