"""A random history: things happen to memories in the engine and in the reference, and both must agree on everything."""

import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from recollect.engine import Engine
from recollect.errors import NotFound, RecollectError
from recollect.flows.kinds.target import SESSION, USER, Target
from recollect.flows.long_term.memory_requests import Change, Chosen, Options
from recollect.memory.index.search import Scope
from recollect.memory.memories import CATEGORIES, MemoryScope, StoredMemory
from recollect.storage.sql import Query
from tests.oracle.reference import Content, Entry, Known, Reference, Refused, merged

SCOPES = (
    MemoryScope("ann"),
    MemoryScope("ann", "bot"),
    MemoryScope("ann", None, "talk"),
    MemoryScope(None, "bot"),
    MemoryScope("bob"),
)
WORDS = ("lantern", "violin", "orchard", "copper", "meadow")
# All texts have a word in common, so that one question finds them all by words alone.
QUESTION = "harbour " + " ".join(WORDS)
KEYS = ("home", "work")
TICK = timedelta(microseconds=1)
WORLD = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021, 2022, 2023)]
DAY = timedelta(days=1)
MANY = 100

# A clock that moves on: what expires up to a moment is over, wherever that time is stored.
PASS = [
    Query.named(
        f"oracle.pass_{table}",
        f"update {table} set expires_at = expires_at - interval '10 years' "
        "where namespace = :namespace and expires_at <= :moment and expires_at > now() returning 1",
    )
    for table in ("memories", "memory_versions", "passages")
]
STORED = Query.named("oracle.stored", "select id::text from memories where namespace = :namespace")
INDEXED = Query.named(
    "oracle.indexed",
    "select distinct split_part(item_id, '/', 1) from passages "
    "where namespace = :namespace and kind in ('memory', 'past_memory')",
)
# By the words, maintenance finds what is over. It does not hear of the clock that moves on, and so stays out of this.
OUT_OF_STEP = Query.named(
    "oracle.out_of_step",
    "select passages.item_id from passages "
    "join passage_words words on words.namespace = :namespace and words.id = passages.id "
    "where passages.namespace = :namespace and words.expires_at is distinct from passages.expires_at "
    "and words.expires_at is distinct from passages.expires_at + interval '10 years'",
)


Some = TypeVar("Some")


class Disagreement(AssertionError):
    """The engine and the reference differ."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What is asked about: as of when, and true when."""

    as_of: datetime | None
    valid_at: datetime | None


class History:
    """Things that happen one after the other, and questions about them."""

    def __init__(self, engine: Engine, namespace: str, random: Random) -> None:
        self._engine = engine
        self._namespace = namespace
        self._random = random
        self._reference = Reference()
        self._ever: list[UUID] = []
        self._moments: set[datetime] = set()
        self._expired: set[UUID] = set()
        self._expiries = 0
        self._moves = 0
        self.told: list[str] = []
        self.agreed = 0

    async def run(self, steps: int, questions: int) -> int:
        """So many steps with a question behind each, and more at the end. Returns on how many both agreed."""
        happens: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (10, self._add),
            (6, self._change),
            (5, self._undo),
            (3, self._delete),
            (1, self._forget),
            (2, self._expire),
            (1, self._sweep),
            (1, self._move),
        ]
        weights, actions = zip(*happens, strict=True)
        while not self._ever:
            await self._add()
        for _ in range(steps - 1):
            await self._random.choices(actions, weights)[0]()
            await self._ask()
        for _ in range(questions):
            await self._ask()
        await self._end()
        return self.agreed

    async def _add(self) -> None:
        scope = self._one(SCOPES)
        given = self._details(0.35)
        supersedes = self._some_ids(scope) if self._random.random() > 0.7 else []
        content = Content(self._text(), self._category(), self._metadata(), **given)
        told_at = self._one(WORLD) if self._random.random() > 0.9 else None
        self._tell(f"add {content} to {scope}, supersedes {supersedes}, at {told_at}")
        options = Options(**given, supersedes=[str(each) for each in supersedes])
        adding = self._engine.memories.add(
            self._namespace, content.text, content.category, scope, content.metadata, at=told_at, options=options
        )
        try:
            what, replaced = self._reference.plan_add(scope, content, given, supersedes)
        except Refused:
            await self._is_refused(adding)
            return
        added = await adding
        self._same(what, added.what, "what became of it")
        self._same(replaced, set(added.superseded), "superseded")
        memory_id = added.memory.id
        if what == "created":
            self._ever.append(memory_id)
            self._reference.create(Known(memory_id, scope, [Entry("create", content)], told_at), replaced)
        elif what == "merged":
            old = self._reference.memories[memory_id].now.content
            self._reference.change(memory_id, merged(old, content, given), replaced)
        await self._read_moments({memory_id, *replaced})
        self._compare(self._reference.memories[memory_id], self._reference.memories[memory_id].now, added.memory)

    async def _change(self) -> None:
        memory_id = self._some_id()
        details = self._details(0.3)
        details |= {name: None for name in ("valid_from", "valid_until", "key", "expires_at") if self._rarely()}
        change = Change(
            self._text() if self._random.random() < 0.4 else None,
            self._category() if self._random.random() < 0.2 else None,
            {**self._metadata(), **({"mood": None} if self._rarely() else {})} if self._rarely() else None,
            details,
        )
        self._tell(f"change {memory_id}: {change}")
        changing = self._engine.memories.update(self._namespace, str(memory_id), change)
        try:
            touched = self._reference.change(memory_id, self._changed(memory_id, change))
        except Refused:
            await self._is_refused(changing)
            return
        written = await changing
        await self._read_moments(touched)
        memory = self._reference.memories[memory_id]
        self._compare(memory, memory.now, written.memory)

    def _changed(self, memory_id: UUID, change: Change) -> Content:
        if memory_id not in self._reference.memories:
            raise Refused
        old = self._reference.memories[memory_id].now.content
        patched = {**old.metadata, **(change.metadata or {})}
        return replace(
            old,
            text=change.text or old.text,
            category=change.category or old.category,
            metadata={name: value for name, value in patched.items() if value is not None},
            **change.details,
        )

    async def _undo(self) -> None:
        superseded = [each.id for each in self._reference.memories.values() if not each.in_force]
        memory_id = self._one(superseded) if superseded and not self._rarely() else self._some_id()
        self._tell(f"undo {memory_id}")
        undoing = self._engine.memories.undo(self._namespace, str(memory_id))
        try:
            touched = self._reference.undo(memory_id)
        except Refused:
            await self._is_refused(undoing)
            return
        written = await undoing
        await self._read_moments(touched)
        memory = self._reference.memories[memory_id]
        self._compare(memory, memory.now, written.memory)

    async def _delete(self) -> None:
        memory_id, restore = self._some_id(), self._random.random() < 0.6
        self._tell(f"delete {memory_id}, restore {restore}")
        deleting = self._engine.memories.delete(self._namespace, str(memory_id), restore=restore)
        superseded = set(self._reference.superseded_by(memory_id))
        try:
            touched = self._reference.delete(memory_id, restore=restore)
        except Refused:
            await self._is_refused(deleting)
            return
        deleted = await deleting
        self._same(superseded, {*deleted.restored, *deleted.superseded}, "what it had superseded")
        restored = {each for each in superseded if self._reference.memories[each].in_force}
        self._same(restored, set(deleted.restored), "what is in force again")
        await self._read_moments(touched)

    async def _forget(self) -> None:
        if self._random.random() < 0.2:
            await self._forget_all(self._one([Target(USER, "ann"), Target(USER, "bob"), Target(SESSION, "talk")]))
            return
        memory_id = self._some_id()
        self._tell(f"forget {memory_id}")
        known = memory_id in self._reference.memories or memory_id in self._reference.deleted
        self._reference.forget(memory_id)
        try:
            await self._engine.forget.item(self._namespace, f"memory:{memory_id}")
        except NotFound:
            self._same(known, False, "whether there was something to forget")

    async def _forget_all(self, target: Target) -> None:
        self._tell(f"forget {target}")
        for memory in [*self._reference.memories.values(), *self._reference.deleted.values()]:
            if (memory.scope.user_id if target.kind == USER else memory.scope.session_id) == target.id:
                self._reference.forget(memory.id)
        with suppress(NotFound):
            await self._engine.forget.forget(self._namespace, target)

    async def _expire(self) -> None:
        times = [each.now.content.expires_at for each in self._reference.memories.values()]
        if not (some := [time for time in times if time is not None]):
            return
        moment = self._one(some)
        over = self._reference.expire(moment)
        self._expired |= over
        self._tell(f"let time pass until {moment}: {over} expire")
        for statement in PASS:
            async with self._engine.database.transaction(self._namespace) as tx:
                await tx.all(statement, moment=moment)

    async def _sweep(self) -> None:
        self._tell("sweep")
        self._same(set(), await self._ids(OUT_OF_STEP), "whose words expire at another time")
        await self._engine.memories.sweep(self._namespace)
        self._same(self._known_ids(), await self._ids(STORED), "what is stored after a sweep")

    async def _move(self) -> None:
        """Go on in another namespace, with what was exported from this one."""
        self._moves += 1
        there = f"{self._namespace}-{self._moves}"
        self._tell(f"export, and import into {there}")
        lines = [line async for line in self._engine.exporting.lines(self._namespace)]
        report = await self._engine.importing.run(io.BytesIO("\n".join(lines).encode()), there)
        self._same([], report.refusals, "problems of the import")
        self._namespace = there

    async def _end(self) -> None:
        """Nothing is left of what is gone, neither in the tables nor in the index."""
        await self._sweep()
        self._same(self._known_ids(), await self._ids(INDEXED), "what is indexed at the end")
        self._same(set(), await self._ids(OUT_OF_STEP), "whose words expire at another time at the end")

    async def _ask(self) -> None:
        asked = Moments(self._as_of(), self._valid_at())
        await self._one([self._get, self._list, self._search, self._recall, self._history])(asked)
        self.agreed += 1

    async def _get(self, asked: Moments) -> None:
        memory_id = self._one(self._ever)
        self._tell(f"? get {memory_id} as of {asked.as_of}")
        memory = self._reference.memories.get(memory_id)
        entry = None if memory is None else memory.at(asked.as_of)
        try:
            found = await self._engine.memories.get(self._namespace, str(memory_id), asked.as_of)
        except NotFound:
            self._same(entry, None, "what the memory was")
            return
        if memory is None or entry is None:
            raise self._disagreement("no memory", found)
        self._compare(memory, entry, found)

    async def _list(self, asked: Moments) -> None:
        scope = self._one([*SCOPES, MemoryScope()])
        category = self._category() if self._rarely() else None
        key = self._one(KEYS) if self._rarely() else None
        self._tell(f"? list {scope} {asked}, category {category}, key {key}")
        chosen = Chosen([category] if category else None, key=key, as_of=asked.as_of, valid_at=asked.valid_at)
        page = await self._engine.memories.newest(self._namespace, scope, MANY, chosen=chosen)
        expected = self._reference.visible(scope, asked.as_of, asked.valid_at, category, key)
        self._same([each for each, _ in expected], [each.id for each in page.memories], "the list")
        for (_, content), found in zip(expected, page.memories, strict=True):
            self._same_content(content, found)

    async def _search(self, asked: Moments) -> None:
        scope = self._one(SCOPES)
        category = self._category() if self._rarely() else None
        self._tell(f"? search {scope} {asked}, category {category}")
        chosen = Chosen([category] if category else None, as_of=asked.as_of, valid_at=asked.valid_at)
        hits = await self._engine.memories.search(self._namespace, QUESTION, scope, chosen, MANY)
        found = {each.memory.id: each.memory for each in hits}
        expected = dict(self._reference.visible(scope, asked.as_of, asked.valid_at, category))
        self._same(sorted(expected), sorted(each.memory.id for each in hits), "the search")
        for memory_id, content in expected.items():
            self._same_content(content, found[memory_id])

    async def _recall(self, asked: Moments) -> None:
        scope = self._one(SCOPES)
        kinds = self._one([None, ("memory",)])
        self._tell(f"? recall {scope} {asked}, kinds {kinds}")
        searched = Scope(
            scope.user_id, scope.agent_id, scope.session_id, kinds, as_of=asked.as_of, valid_at=asked.valid_at
        )
        recalled = await self._engine.recall.recall(self._namespace, QUESTION, searched, top_k=MANY)
        expected = dict(self._reference.visible(scope, asked.as_of, asked.valid_at))
        found = [UUID(name) for each in recalled.memories for name in (each.id, *each.repeats)]
        self._same(sorted(expected), sorted(found), "the recall")
        for each in recalled.memories:
            content = expected[UUID(each.id)]
            told = (each.text, each.category, each.metadata)
            self._same((content.text, content.category, content.metadata), told, "what was recalled")

    async def _read_moments(self, touched: set[UUID]) -> None:
        """Take the moments of what happened from the engine's histories, which must tell the same events."""
        for memory_id in touched:
            timeline = self._reference.memories[memory_id].timeline
            history = await self._engine.memories.history(self._namespace, str(memory_id))
            self._same([entry.event for entry in timeline], [entry.event for entry in history], "the history")
            for entry, told in zip(timeline, history, strict=True):
                self._same(entry.moment or told.at, told.at, "the moment of an event")
                entry.moment = told.at
                self._moments.add(told.at)

    async def _history(self, _: Moments) -> None:
        memory_id = self._one(self._ever)
        if memory_id in self._expired:
            return  # its history grows whenever it is swept
        self._tell(f"? history of {memory_id}")
        memory = self._reference.memories.get(memory_id) or self._reference.deleted.get(memory_id)
        try:
            history = await self._engine.memories.history(self._namespace, str(memory_id))
        except NotFound:
            self._same(memory, None, "the memory with a history")
            return
        if memory is None:
            raise self._disagreement("no history", history)
        self._same([entry.event for entry in memory.timeline], [entry.event for entry in history], "the history")
        if memory_id in self._reference.deleted:
            texts = {text for entry in history for text in (entry.old_memory, entry.new_memory)}
            self._same({None}, texts, "what the history of a deleted memory says")

    async def _is_refused(self, asking: Awaitable[Any]) -> None:
        try:
            answer = await asking
        except RecollectError as refusal:
            self._tell(f"  refused: {refusal}")
        else:
            raise self._disagreement("a refusal", answer)

    def _compare(self, memory: Known, entry: Entry, found: StoredMemory) -> None:
        self._same(memory.scope, found.scope, "the scope")
        self._same(entry.superseded_by, found.superseded_by, "its successor")
        self._same(memory.said_at, found.created_at, "when it was said")
        self._same_content(entry.content, found)

    def _same_content(self, content: Content, found: StoredMemory) -> None:
        # When a past version was to expire is no part of an answer: the clock of these histories jumps.
        told = Content(**{name: getattr(found, name) for name in Content.__dataclass_fields__})
        self._same(replace(content, expires_at=None), replace(told, expires_at=None), "what it says")

    def _same(self, expected: object, found: object, of_what: str) -> None:
        if expected != found:
            raise self._disagreement(f"{of_what}: {expected}", found)

    def _disagreement(self, expected: object, found: object) -> Disagreement:
        return Disagreement("\n".join([*self.told, f"expected {expected}", f"found    {found}"]))

    def _tell(self, line: str) -> None:
        self.told.append(line)

    def _known_ids(self) -> set[str]:
        return {str(each) for each in self._reference.memories}

    async def _ids(self, statement: Query) -> set[str]:
        async with self._engine.database.reading(self._namespace) as db:
            return {row[0] for row in await db.all(statement)}

    def _as_of(self) -> datetime | None:
        moments = sorted(self._moments)
        match self._random.randrange(5):
            case 0:
                return None
            case 1:
                first = self._random.randrange(len(moments))
                between = moments[first : first + 2]
                return between[0] + (between[-1] - between[0]) / 2
            case step:
                return self._one(moments) + (step - 3) * TICK

    def _valid_at(self) -> datetime | None:
        if self._random.random() < 0.5:
            return None
        return self._one(WORLD) + self._one([-TICK, TICK * 0, TICK])

    def _details(self, chance: float) -> dict[str, Any]:
        made: Mapping[str, Callable[[], Any]] = {
            "valid_from": lambda: self._one(WORLD),
            "valid_until": lambda: self._one(WORLD),
            "key": lambda: self._one(KEYS),
            "expires_at": self._expires_at,
        }
        return {name: make() for name, make in made.items() if self._random.random() > 1 - chance}

    def _expires_at(self) -> datetime:
        """Each is another one, in any order."""
        self._expiries += 1
        return datetime.now(UTC) + DAY * self._random.randrange(1, 100) + TICK * self._expiries

    def _metadata(self) -> dict[str, Any]:
        return {"mood": self._one(["calm", "glad"])} if self._rarely() else {}

    def _text(self) -> str:
        return f"The harbour has a {self._one(WORDS)}"

    def _category(self) -> str:
        return CATEGORIES[0] if self._random.random() < 0.8 else CATEGORIES[1]

    def _some_ids(self, scope: MemoryScope) -> list[UUID]:
        own = [each.id for each in self._reference.memories.values() if each.scope == scope and each.in_force]
        if self._rarely() or not own:
            return [self._some_id()] if self._ever else []
        return self._random.sample(own, self._random.randint(1, min(2, len(own))))

    def _some_id(self) -> UUID:
        """Mostly of a memory that there is."""
        known = list(self._reference.memories)
        return self._one(known) if known and not self._rarely() else self._one(self._ever)

    def _rarely(self) -> bool:
        # Not for zero, with which hypothesis begins: its simplest history is of plain memories.
        return self._random.random() > 0.8

    def _one(self, some: Sequence[Some]) -> Some:
        return some[self._random.randrange(len(some))]
