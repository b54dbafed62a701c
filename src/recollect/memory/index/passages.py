"""Passages: the one search index, written with every item, completed by the indexer, removed with the item."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple, Protocol, Self

from recollect import tasks
from recollect.language import bm25, words
from recollect.language.names import ROLES
from recollect.language.passages import cutting
from recollect.origin import Origin
from recollect.steps import in_steps
from recollect.storage import citus
from recollect.storage.database import Database, Statements, Transaction
from recollect.storage.sql import Queries, Query
from recollect.trust import Trust, of_item

# Of a speaker or a title, whose words are words of every passage.
NAME_CHARACTERS = 255

# A statement's values are put together on the event loop: for so many passages it takes some ten milliseconds.
ADDED_AT_ONCE = 128

# Of a text, before its transaction. No message has so many passages.
WEIGHED_AHEAD = 512


class _Sql(Queries, file="passages.sql"):
    add: Query
    add_words: Query
    enqueue: Query
    relabel: Query
    retire: Query
    retire_words: Query
    retire_vectors: Query
    expire: Query
    expire_words: Query
    of_items: Query
    count_of_items: Query
    count_in_sessions: Query
    items: Query
    parts: Query
    kinds: Query
    trusts: Query
    lock: Query
    counted_weights: Query
    remove: Query
    remove_words: Query
    remove_vectors: Query
    remove_from_queue: Query
    count_terms: Query
    remove_unused_terms: Query
    claim: Query
    claim_uncounted: Query
    claim_some: Query
    texts: Query
    add_vectors: Query
    mark_counted: Query
    waiting: Query
    backlog: Query
    waiting_in_session: Query
    waiting_of: Query
    waiting_anywhere: Query
    namespaces_with_work: Query
    namespaces_with_expired: Query


@dataclass(frozen=True)
class Excerpt:
    """One passage of a text; its words are weighed when they are first asked for."""

    text: str
    name: str = ""
    """Whose words count as words of the passage: its speaker's or its title's."""

    def weighed(self) -> Self:
        """The same, weighed now."""
        _ = self._words
        return self

    @property
    def terms(self) -> tuple[str, ...]:
        return self._words[0]

    @property
    def weights(self) -> str:
        """As a `sparsevec` in its text form."""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[tuple[str, ...], str]:
        weights = bm25.saturated_weights(words.document_terms(self.name + self.text))
        return tuple(weights), bm25.sparse_text(weights)


@dataclass(frozen=True, slots=True)
class Source:
    """An item that is to be found again, with what a search may ask of it; metadata is JSON text."""

    kind: str
    item_id: str
    excerpts: tuple[Excerpt, ...]
    at: datetime
    owner: str = ""
    agent_id: str | None = None
    session_id: str | None = None
    position: int | None = None
    role: str | None = None
    speaker: str | None = None
    category: str | None = None
    metadata: str | None = None
    realm: str = ""
    since: datetime | None = None
    """Since when it has been in force; None for what is in force from its own time on."""
    ended_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    key: str | None = None
    """What it is stored under."""
    trust: str | None = None
    """Where it comes from, unless its kind and role say it."""
    beside: str | None = None
    """What readers are shown beside it, which no search finds; as JSON text."""
    by: Origin | None = None
    """Who stored it, if that is not the present caller."""
    is_unsuspicious: bool = False  # screened before the transaction


class Said(Protocol):
    """A message, as far as its passages tell of it."""

    @property
    def role(self) -> str: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def metadata(self) -> str | None: ...
    @property
    def trust(self) -> str | None: ...


class Part(NamedTuple):
    """One passage of an item, and who said it."""

    kind: str
    owner: str
    speaker: str | None
    role: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A passage that this indexer works on until its transaction ends."""

    id: int
    kind: str
    owner: str
    head: int | None
    """The first passage of its item; None for that one itself."""
    text: str
    terms: tuple[int, ...]
    counted: bool


def analyse(text: str, speaker: str | None = None) -> tuple[Excerpt, ...]:
    """Cut a text into passages and weigh their words; a speaker's own name counts as a word of what was said."""
    return tuple(excerpt for excerpt in analysing(text, speaker) if excerpt is not None)


def analysing(text: str, speaker: str | None = None) -> Iterator[Excerpt | None]:
    """The same in steps, for a text that may be long; None where a step brought no passage.

    Of a giant only the beginning is weighed, so that a transaction is as short as before: the rest is weighed while the
    database takes what comes before it.
    """
    name = f"{speaker[:NAME_CHARACTERS]} " if speaker and speaker.lower() not in ROLES else ""
    number = 0
    for passage in cutting(text):
        if passage is None:
            yield None
            continue
        number += 1
        excerpt = Excerpt(passage, name)
        yield excerpt.weighed() if number <= WEIGHED_AHEAD else excerpt


class _Part(NamedTuple):
    """One passage of one item, with its words as the database takes them."""

    source: Source
    number: int
    text: str
    keys: list[int]
    weights: str


def _parts(namespace: str, sources: Iterable[Source]) -> Iterator[_Part]:
    for source in sources:
        for number, excerpt in enumerate(source.excerpts):
            keys = keys_of(namespace, source.owner, excerpt)
            yield _Part(source, number, excerpt.text, keys, excerpt.weights)


class Passages:
    """Writes and removes passages, and hands the indexer its work."""

    screens = False
    """Whether items are judged."""

    def suspicions(self, message: Said, excerpts: Sequence[Excerpt]) -> Iterator[object | None]:
        """What is suspicious about a message that is to be stored, in short steps; nothing where nobody looks."""
        return iter(())

    async def screen(self, tx: Transaction, sources: Sequence[Source]) -> list[Source]:
        """Those of some items that may be shown: all of them where nobody looks."""
        return list(sources)

    async def release(self, tx: Transaction, source: Source) -> None:
        """Make an item findable that was held back."""
        await self.add(tx, [source])

    async def trusts(self, db: Statements, kind: str, item_ids: Sequence[str]) -> dict[str, Trust]:
        """Where the texts of some items come from; those without passages are left out."""
        rows = await db.all(_Sql.trusts, kind=kind, item_ids=list(item_ids))
        return {row["item_id"]: of_item(kind, row["role"], row["trust"]) for row in rows}

    async def add(self, tx: Transaction, sources: Sequence[Source]) -> None:
        """Make items available to keyword search now, and to semantic search soon."""
        parts = _parts(tx.namespace, sources)
        first: dict[str, int] = {}
        some = await in_steps(islice(parts, ADDED_AT_ONCE))
        while len(some) == ADDED_AT_ONCE:
            # The next are weighed while the database takes these.
            async with tasks.beside(self._add(tx, some, first)) as (adding,):
                some = await in_steps(islice(parts, ADDED_AT_ONCE))
                await adding
        if some:
            await self._add(tx, some, first)

    async def _add(self, tx: Transaction, parts: Sequence[_Part], first: dict[str, int]) -> None:
        """Some of the passages of some items; `first` gathers the first passage of each item."""
        sources = [part.source for part in parts]
        inserted = await tx.all(
            _Sql.add,
            kinds=[source.kind for source in sources],
            item_ids=[source.item_id for source in sources],
            parts=[part.number for part in parts],
            owners=[source.owner for source in sources],
            agent_ids=[source.agent_id for source in sources],
            session_ids=[source.session_id for source in sources],
            positions=[source.position for source in sources],
            roles=[source.role for source in sources],
            speakers=[source.speaker for source in sources],
            categories=[source.category for source in sources],
            metadata=[source.metadata for source in sources],
            times=[source.at for source in sources],
            texts=[part.text for part in parts],
            realms=[source.realm for source in sources],
            since=[source.since for source in sources],
            ended=[source.ended_at for source in sources],
            valid_from=[source.valid_from for source in sources],
            valid_until=[source.valid_until for source in sources],
            expiries=[source.expires_at for source in sources],
            trusts=[source.trust for source in sources],
        )
        ids = {(row["item_id"], row["part"]): row["id"] for row in inserted}
        first |= {item_id: passage_id for (item_id, part), passage_id in ids.items() if part == 0}
        in_order = [ids[part.source.item_id, part.number] for part in parts]
        keys = [key for part in parts for key in part.keys]
        await tx.all(
            _Sql.add_words,
            ids=in_order,
            kinds=[source.kind for source in sources],
            heads=[first[part.source.item_id] if part.number else None for part in parts],
            keys=keys,
            key_ends=list(accumulate(len(part.keys) for part in parts)),
            weights=[part.weights for part in parts],
            expiries=[source.expires_at for source in sources],
        )
        await tx.all(_Sql.enqueue, ids=in_order, owners=[source.owner for source in sources])

    async def relabel(self, tx: Transaction, source: Source) -> None:
        """Give the passages of an item another category and other metadata; their words stay."""
        names = {"kind": source.kind, "item_id": source.item_id}
        await tx.all(_Sql.relabel, **names, category=source.category, metadata=source.metadata)

    async def retire(
        self, tx: Transaction, kind: str, item_id: str, past_kind: str, past_item_id: str, moment: datetime
    ) -> None:
        """Keep the passages of an item for questions about the time before a moment, as those of a past version.

        An indexer that works on them would store vectors of what they were, so this waits for it. Before a transaction
        counts words, therefore: the indexer counts some, too.
        """
        await tx.all(_Sql.lock, ids=await self.of_items(tx, kind, [item_id]))
        names = {"kind": kind, "item_id": item_id, "past_kind": past_kind, "past_item_id": past_item_id}
        ids = [row["id"] for row in await tx.all(_Sql.retire, **names, moment=moment)]
        for statement in (_Sql.retire_words, _Sql.retire_vectors):
            await tx.all(statement, ids=ids, past_kind=past_kind)

    async def expire(self, tx: Transaction, kind: str, item_ids: Sequence[str], expires_at: datetime | None) -> None:
        """Set when the passages of some items are over; None is never."""
        rows = await tx.all(_Sql.expire, kind=kind, item_ids=list(item_ids), expires_at=expires_at)
        await tx.all(_Sql.expire_words, ids=[row["id"] for row in rows], expires_at=expires_at)

    async def complete_new(
        self, tx: Transaction, kind: str, item_id: str, model: str, vectors: Mapping[str, str]
    ) -> None:
        """Store the vectors of an item that this same transaction added; vectors by the text of their passage."""
        claims = await self._new_claims(tx, kind, [item_id])
        await self.complete(tx, claims, model, [vectors[claim.text] for claim in claims])

    async def _new_claims(self, tx: Transaction, kind: str, item_ids: Sequence[str]) -> list[Claim]:
        # No one else sees these passages yet, so their words are not counted and no worker has them.
        return await self._claims(tx, dict.fromkeys(await self.of_items(tx, kind, item_ids), False))

    async def items(self, db: Statements, ids: Sequence[int]) -> dict[int, str]:
        """The item that each of some passages belongs to."""
        return {row["id"]: row["item_id"] for row in await db.all(_Sql.items, ids=list(ids))}

    async def parts(self, db: Statements, kind: str, item_ids: Sequence[str]) -> dict[str, list[Part]]:
        """The passages of some items of one kind, both in order."""
        found: dict[str, list[Part]] = {}
        for row in await db.all(_Sql.parts, kind=kind, item_ids=list(item_ids)):
            found.setdefault(row["item_id"], []).append(
                Part(kind, row["owner"], row["speaker"], row["role"], row["text"])
            )
        return found

    async def kinds(self, db: Statements, item_id: str, among: Sequence[str]) -> list[str]:
        """Which of some kinds have an item of this id."""
        return [row["kind"] for row in await db.all(_Sql.kinds, among=list(among), item_id=item_id)]

    async def remove_items(self, tx: Transaction, kind: str, item_ids: Sequence[str]) -> int:
        """Forget the passages of some items; returns how many there were."""
        ids = await self.of_items(tx, kind, item_ids)
        await self.remove(tx, ids)
        return len(ids)

    async def of_items(self, db: Statements, kind: str, item_ids: Sequence[str]) -> list[int]:
        """The passages of some items of one kind."""
        return [row["id"] for row in await db.all(_Sql.of_items, kind=kind, item_ids=list(item_ids))]

    async def count_of_items(self, db: Statements, kind: str, item_ids: Sequence[str]) -> int:
        """How many passages some items have."""
        return int((await db.one(_Sql.count_of_items, kind=kind, item_ids=list(item_ids)))["passages"])

    async def count_in_sessions(self, db: Statements, session_ids: Sequence[str]) -> int:
        """How many passages the messages of some sessions have."""
        return int((await db.one(_Sql.count_in_sessions, session_ids=list(session_ids)))["passages"])

    async def remove(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Forget passages and all that was derived from them, counts included.

        Once in a transaction: two that each take away counts twice could wait for each other.
        """
        await self.replace(tx, ids, [])

    async def replace(
        self,
        tx: Transaction,
        ids: Sequence[int],
        sources: Sequence[Source],
        model: str | None = None,
        vectors: Mapping[str, str] | None = None,
    ) -> None:
        """Forget passages and add those of some items of one kind, and count the words of both at once.

        With a model, the new ones are complete: vectors by the text of their passage.
        """
        await tx.all(_Sql.lock, ids=ids)
        rows = await tx.all(_Sql.counted_weights, ids=ids)
        gone = await in_steps(_terms(row["weights"]) for row in rows)
        for statement in (_Sql.remove, _Sql.remove_words, _Sql.remove_vectors, _Sql.remove_from_queue):
            await tx.all(statement, ids=ids)
        await self.add(tx, sources)
        claims: list[Claim] = []
        if model is not None and vectors is not None and sources:
            claims = await self._new_claims(tx, sources[0].kind, [source.item_id for source in sources])
            await self._add_vectors(tx, claims, model, [vectors[claim.text] for claim in claims])
        await self._count(tx, [claim.terms for claim in claims], gone)

    async def claim(self, tx: Transaction, limit: int, *, with_model: bool) -> list[Claim]:
        """Take the newest waiting passages for this transaction; other indexers pass them over."""
        rows = await tx.all(_Sql.claim if with_model else _Sql.claim_uncounted, limit=limit)
        return await self._claims(tx, {row["id"]: row["counted"] for row in rows})

    async def claim_some(self, tx: Transaction, ids: Sequence[int], limit: int) -> list[Claim]:
        """Take those of these passages for this transaction that no one else has taken."""
        rows = await tx.all(_Sql.claim_some, ids=list(ids), limit=limit)
        return await self._claims(tx, {row["id"]: row["counted"] for row in rows})

    async def _claims(self, tx: Transaction, counted: Mapping[int, bool]) -> list[Claim]:
        texts = await tx.all(_Sql.texts, ids=list(counted))
        if gone := counted.keys() - {row["id"] for row in texts}:
            # Deleted while something put them back into the queue.
            await tx.all(_Sql.remove_from_queue, ids=list(gone))
        return [
            Claim(
                row["id"],
                row["kind"],
                row["owner"],
                row["head"],
                row["text"],
                _terms(row["weights"]),
                counted[row["id"]],
            )
            for row in texts
        ]

    async def complete(self, tx: Transaction, claims: Sequence[Claim], model: str, vectors: Sequence[str]) -> None:
        """Store the vectors of claimed passages, count their words, and take them off the queue."""
        await self._add_vectors(tx, claims, model, vectors)
        await self._count(tx, [claim.terms for claim in claims if not claim.counted])

    async def _add_vectors(self, tx: Transaction, claims: Sequence[Claim], model: str, vectors: Sequence[str]) -> None:
        await tx.all(
            _Sql.add_vectors,
            ids=[claim.id for claim in claims],
            kinds=[claim.kind for claim in claims],
            owners=[claim.owner for claim in claims],
            heads=[claim.head for claim in claims],
            vectors=list(vectors),
            model=model,
        )
        await tx.all(_Sql.remove_from_queue, ids=[claim.id for claim in claims])

    async def count_only(self, tx: Transaction, claims: Sequence[Claim]) -> None:
        """Without a model: count the words; the passages stay in the queue until there is one."""
        await tx.all(_Sql.mark_counted, ids=[claim.id for claim in claims])
        await self._count(tx, [claim.terms for claim in claims])

    async def waiting(self, db: Statements, at_most: int) -> int:
        """How many passages of the namespace wait for the indexer, up to a bound."""
        return int((await db.one(_Sql.waiting, at_most=at_most))["waiting"])

    async def backlog(self, db: Statements, at_most: int) -> tuple[int, float]:
        """How many wait, up to a bound, and for how many seconds the one that waits longest does."""
        row = await db.one(_Sql.backlog, at_most=at_most)
        return row["waiting"], row["seconds"]

    async def waiting_in_session(self, db: Statements, owner: str, session_id: str) -> list[int]:
        """The passages of an owner's session that wait for the indexer."""
        return [row["id"] for row in await db.all(_Sql.waiting_in_session, owner=owner, session_id=session_id)]

    async def waiting_of(self, db: Statements, ids: Sequence[int]) -> list[int]:
        """Those of some passages that still wait for the indexer."""
        return [row["id"] for row in await db.all(_Sql.waiting_of, ids=list(ids))]

    async def waiting_anywhere(self, database: Database, at_most: int) -> int:
        """How many passages wait for the indexer, in all namespaces together and up to a bound."""
        async with database.unscoped() as connection:
            return int(await connection.fetchval(_Sql.waiting_anywhere.text, at_most))

    async def namespaces_with_work(self, database: Database) -> list[str]:
        """Where the indexer has something to do; it looks across namespaces, and sees only their names."""
        async with database.alone() as connection:
            if database.distributed:
                return await citus.namespaces(connection, "passage_queue")
            rows = await connection.fetch(_Sql.namespaces_with_work.text)
        return [row["namespace"] for row in rows]

    async def namespaces_with_expired(self, database: Database, besides: Sequence[str], limit: int) -> list[str]:
        """Whose passages are over, besides some, among as many that have been so for longest; only their names."""
        async with database.alone() as connection:
            if database.distributed:
                return await citus.namespaces_with_expired(connection, "passage_words", besides, limit)
            rows = await connection.fetch(_Sql.namespaces_with_expired.text, list(besides), limit)
        return [row["namespace"] for row in rows]

    async def _count(self, tx: Transaction, added: Sequence[Iterable[int]], gone: Sequence[Iterable[int]] = ()) -> None:
        """Change the statistics of how many passages hold each term, and drop terms that none holds any more."""
        counts: Counter[int] = Counter()
        await in_steps(map(counts.update, added))
        await in_steps(map(counts.subtract, gone))
        counts[bm25.ALL_PASSAGES] = len(added) - len(gone)
        changed = {term: count for term, count in counts.items() if count}
        if changed:
            await tx.all(_Sql.count_terms, terms=list(changed), counts=list(changed.values()))
        if fewer := sorted(term for term, count in changed.items() if count < 0):
            await tx.all(_Sql.remove_unused_terms, counts=fewer)


def keys_of(namespace: str, owner: str, excerpt: Excerpt) -> list[int]:
    """By which keyword search finds a passage: in the whole namespace, and among what its owner has."""
    keys = bm25.keys(namespace, None, excerpt.terms)
    return keys + bm25.keys(namespace, owner, excerpt.terms) if owner else keys


def _terms(weights: str) -> tuple[int, ...]:
    """The dimensions of a sparsevec in its text form."""
    inside = weights[1 : weights.index("}")]
    return tuple(int(entry.split(":")[0]) for entry in inside.split(",")) if inside else ()
