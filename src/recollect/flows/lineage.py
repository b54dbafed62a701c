"""Lineage: how an item came to be what it is: what happened to it, who did that, and what it was made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from recollect import origin, trust
from recollect.errors import Invalid, NotFound
from recollect.flows.capabilities import Capabilities
from recollect.flows.kinds import registry
from recollect.flows.kinds.kind import MAX_SHOWN_CHARACTERS, as_uuid
from recollect.flows.kinds.long_term import MEMORY
from recollect.flows.kinds.target import Target
from recollect.flows.long_term.memory_ids import as_uuid as as_memory_id
from recollect.flows.long_term.memory_ids import bare, existing
from recollect.flows.named_items import NamedItem, NamedItems, of_memory, one_item
from recollect.memory.changes import RELEASED
from recollect.memory.memories import HistoryEntry, StoredMemory
from recollect.memory.traces import By, Trace, Version
from recollect.storage.database import Database, Statements
from recollect.trust import Trust

# Of more events, the latest are shown.
MAX_EVENTS = 200
MAX_SUPERSEDED = 100
MAX_SOURCES = 200
MAX_DEPTH = 5

State = Literal["in_force", "superseded", "deleted", "expired", "forgotten", "gone", "held"]
What = Literal["stored", "changed", "superseded", "undone", "deleted", "expired", "imported", "forgotten", "released"]

_EVENTS: Mapping[str, What] = {
    "create": "stored",
    "add": "stored",
    "update": "changed",
    "supersede": "superseded",
    "undo": "undone",
    "delete": "deleted",
    "expire": "expired",
    "import": "imported",
    "forget": "forgotten",
}
_ENDS: Mapping[str, State] = {"deleted": "deleted", "expired": "expired", "forgotten": "forgotten"}
_DETAILS = ("category", "metadata", "valid_from", "valid_until", "key", "expires_at", "pinned")
_SHOWN_DETAILS = ("key", "valid_from", "valid_until", "expires_at")


@dataclass(frozen=True, slots=True)
class Mention:
    """Another item that has to do with what happened, with what it says now; no text if it is gone or held back."""

    name: str
    state: State
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What a part of a memory was, and what it became."""

    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an item, and who did it, as far as that is known."""

    at: datetime
    event: What
    author: str | None
    door: str | None
    old_text: str | None = None
    new_text: str | None = None
    changed: Mapping[str, Difference] | None = None
    """What else of a memory became different, by name."""
    by: Mention | None = None
    """What took its place."""
    because: str | None = None
    """Why it was superseded: `key`, `request`, `language model` or `undo`."""
    model: str | None = None
    """The language model that condensed it, or that decided to replace it."""
    said: str | None = None
    """What a language model condensed."""
    saw: tuple[Mention, ...] = ()
    """The memories that the language model was shown."""
    despite: tuple[str, ...] = ()
    """Why it was held for review, if it was released."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A memory that this one superseded, when and why; it may be in force again."""

    memory: Mention
    at: datetime
    because: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """What an item was made from, with its own sources. One that is gone has a name only, one held back no text."""

    name: str
    state: State
    text: str | None = None
    at: datetime | None = None
    speaker: str | None = None
    author: str | None = None
    door: str | None = None
    sources: tuple["Source", ...] = ()
    session_id: str | None = None
    """Of a message, where it was said."""


@dataclass(frozen=True, slots=True)
class Story:
    """An item as it is now, everything that happened to it, and what it was made from."""

    name: str
    state: State
    text: str | None
    at: datetime | None
    """When it was said or stored."""
    speaker: str | None
    events: tuple[Event, ...]
    superseded_by: Mention | None
    superseded: tuple[Replaced, ...]
    sources: tuple[Source, ...]
    is_whole: bool
    """False if there are more events or sources than are told."""
    key: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    session_id: str | None = None
    """Of a message, where it was said."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else is stored of an item that is neither a memory nor a message, such as the URI of a resource."""
    trust: Trust | None = None
    """The class of trust of its text; None if it has none, or is gone."""
    held: tuple[str, ...] = ()
    """Why it is held for review, so that recall does not find it; empty if it is not."""


class Lineage:
    """Reads what writes have recorded. Of an item that is gone, it shows events without content."""

    def __init__(self, database: Database, capabilities: Capabilities, items: NamedItems) -> None:
        self._database = database
        self._capabilities = capabilities
        self._items = items

    async def of(self, namespace: str, name: str, most: int = MAX_SHOWN_CHARACTERS) -> Story:
        """The story of an item, by a name such as `insight:12` or an id as recall shows it.

        Its own texts, now and before, have so many characters at most.
        """
        asked = one_item(name)
        async with self._database.reading(namespace) as db:
            target, item, events = await self._known(db, asked, most)
            memory = None if item is None else item.memory
            superseded: tuple[Replaced, ...] = ()
            if memory is not None:
                versions = await self._capabilities.traces.versions(db, memory.id, MAX_EVENTS)
                events = _with_differences(events, versions, memory)
                superseded = await self._superseded(db, memory.id)
            about = dict(item.about) if item is not None else {}
            if item is not None and memory is None and target.kind is not None:
                metadata = await self._capabilities.traces.metadata(db, target.kind, target.id)
                if own := {name: value for name, value in metadata.items() if name not in about}:
                    about["metadata"] = own
            sources, has_all_sources = ((), True) if item is None else await self._sources(db, item)
            of_class, held = (None, ()) if item is None else await self._judged(db, item)
        state = _state(item, events)
        successors = [event.by for event in events if event.event == "superseded"]
        return Story(
            name=str(target),
            state=state,
            text=None if item is None else item.text,
            at=None if item is None else item.at,
            speaker=None if item is None else item.speaker,
            events=tuple(events[-MAX_EVENTS:]),
            superseded_by=successors[-1] if successors and state == "superseded" else None,
            superseded=superseded,
            sources=sources,
            session_id=None if item is None else item.session_id,
            about=about,
            trust=of_class,
            held=held,
            is_whole=has_all_sources and len(events) < MAX_EVENTS and len(superseded) < MAX_SUPERSEDED,
            **({} if memory is None else {name: getattr(memory, name) for name in _SHOWN_DETAILS}),
        )

    async def of_memory(self, namespace: str, memory_id: str, most: int = MAX_SHOWN_CHARACTERS) -> Story:
        """The story of a memory. A key with limits is told what the memory is and was, without sources or the feed."""
        target = Target(MEMORY, bare(memory_id))
        if origin.current().limits is None:
            return await self.of(namespace, str(target), most)
        wanted = as_memory_id(memory_id)
        async with self._database.reading(namespace) as db:
            memory = existing(await self._capabilities.memories.find(db, [wanted]), wanted)
            versions = await self._capabilities.traces.versions(db, wanted, MAX_EVENTS)
            events = _with_differences(await self._memory_events(db, wanted, (), most), versions, memory)
        item = of_memory(memory, most)
        state = _state(item, events)
        successors = [event.by for event in events if event.event == "superseded"]
        return Story(
            name=str(item.target),
            state=state,
            text=item.text,
            at=item.at,
            speaker=None,
            events=tuple(events),
            superseded_by=successors[-1] if successors and state == "superseded" else None,
            superseded=(),
            sources=(),
            is_whole=len(events) < MAX_EVENTS,
            trust=trust.of_item(MEMORY, None, memory.trust),
            **{name: getattr(memory, name) for name in _SHOWN_DETAILS},
        )

    async def _known(self, db: Statements, asked: Target, most: int) -> tuple[Target, NamedItem | None, list[Event]]:
        """The item with that name or id, what it is now, and what happened to it."""
        kinds = registry.recalled() if asked.kind is None else [asked.kind]
        known = []
        for kind in kinds:
            target = Target(kind, str(as_uuid(asked.id) or asked.id))
            item = (await self._items.found(db, [target], most)).get(target)
            target = target if item is None else item.target
            events = await self._events(db, target, item, most)
            if item is not None or events:
                known.append((target, item, events))
        if not known:
            raise NotFound(f"No item has the id {str(asked)[:64]}")
        if len(known) > 1:
            choice = " or ".join(str(target) for target, _, _ in known)
            raise Invalid(f"id {asked.id} is ambiguous: use {choice}")
        return known[0]

    async def _events(self, db: Statements, target: Target, item: NamedItem | None, most: int) -> list[Event]:
        kind = target.kind or ""
        if registry.items()[kind].id.parse(target.id) is None:
            return []
        traces = await self._capabilities.traces.changes(db, kind, target.id, MAX_EVENTS)
        if kind == MEMORY:
            return await self._memory_events(db, UUID(target.id), traces, most)
        if item is not None and item.message is not None:
            place = (item.message.session_id, item.message.position)
            traces = [*(await self._capabilities.traces.turns(db, [place]))[0], *traces]
            # The feed, which lists turns, does not tell that one message was released.
            noted = (await self._capabilities.held.find(db, kind, [target.id])).get(target.id)
            if noted is not None and noted.decided_at is not None:
                traces.append(Trace(noted.decided_at, "update", noted.decided_by, None, {RELEASED: noted.reasons}))
        return [_event(trace) for trace in traces]

    async def _memory_events(self, db: Statements, memory_id: UUID, traces: Sequence[Trace], most: int) -> list[Event]:
        """From its history, which has more than the feed; imports, releases and forgetting are in the feed alone."""
        history = (await self._capabilities.memories.history(db, memory_id))[-MAX_EVENTS:]
        details = [entry.detail or {} for entry in history]
        named = {name for detail in details for name in detail.get("saw", ())}
        named |= {detail["superseded_by"] for detail in details if "superseded_by" in detail}
        mentions = await self._mentions(db, named)
        told = [_history_event(entry, mentions, most) for entry in history]
        others = [
            _event(trace) for trace in traces if trace.event in ("import", "forget") or RELEASED in (trace.detail or {})
        ]
        return sorted([*told, *others], key=lambda event: event.at)

    async def _judged(self, db: Statements, item: NamedItem) -> tuple[Trust | None, tuple[str, ...]]:
        """Where a text comes from, and why it is held, if it is."""
        kind, item_id = item.target.kind or "", item.target.id
        if kind not in registry.recalled():
            return None, ()
        noted = (await self._capabilities.held.find(db, kind, [item_id])).get(item_id)
        if item.memory is not None:
            of_class = trust.of_item(kind, None, item.memory.trust)
        else:
            known = (await self._capabilities.passages.trusts(db, kind, [item_id])).get(item_id)
            role = None if item.message is None else item.message.role
            of_class = known or trust.of_item(kind, role, None if noted is None else noted.trust)
        return of_class, tuple(noted.reasons) if noted is not None and noted.state == "held" else ()

    async def _superseded(self, db: Statements, memory_id: UUID) -> tuple[Replaced, ...]:
        rows = await self._capabilities.traces.superseded(db, memory_id, MAX_SUPERSEDED)
        mentions = await self._mentions(db, {str(row.memory_id) for row in rows})
        return tuple(Replaced(mentions[str(row.memory_id)], row.at, row.because) for row in rows)

    async def _mentions(self, db: Statements, ids: Iterable[str]) -> dict[str, Mention]:
        targets = [Target(MEMORY, memory_id) for memory_id in ids]
        found = await self._items.found(db, targets)
        mentions = {target.id: Mention(str(target), "gone") for target in targets}
        held = await self._held_back(db, found)
        for target, item in found.items():
            is_held = target in held
            state: State = "held" if is_held else _state(item, ())
            mentions[target.id] = Mention(str(target), state, None if is_held else item.text)
        return mentions

    async def _held_back(self, db: Statements, targets: Iterable[Target]) -> set[Target]:
        """Those of some items that are held for review: only who asks for one itself is shown its text."""
        ids: dict[str, list[str]] = {}
        for target in targets:
            ids.setdefault(target.kind or "", []).append(target.id)
        noted = [await self._capabilities.held.find(db, kind, of_kind) for kind, of_kind in ids.items()]
        return {Target(each.kind, each.item_id) for found in noted for each in found.values() if each.state == "held"}

    async def _sources(self, db: Statements, root: NamedItem) -> tuple[tuple[Source, ...], bool]:
        """The tree of sources, in which each is followed once, and whether it is complete."""
        found: dict[Target, NamedItem | None] = {root.target: replace(root, sources=())}
        level = list(root.sources)
        for _ in range(MAX_DEPTH):
            level = [target for target in dict.fromkeys(level) if target not in found][: MAX_SOURCES - len(found) + 1]
            items = await self._items.found(db, level)
            found |= {target: items.get(target) for target in level}
            level = [source for item in items.values() for source in item.sources]
        known = [item for item in found.values() if item is not None]
        held = await self._held_back(db, [item.target for item in known])
        tree = _Tree(found, await self._stored_by(db, known), held)
        sources = tree.grown(root.sources)
        return sources, tree.is_whole

    async def _stored_by(self, db: Statements, items: Sequence[NamedItem]) -> dict[Target, By]:
        """Who stored some items; who imported one did not say it."""
        stored: dict[Target, By] = {}
        places = {item.target: (item.message.session_id, item.message.position) for item in items if item.message}
        turns = await self._capabilities.traces.turns(db, list(places.values())) if places else []
        for target, turn in zip(places, turns, strict=True):
            if turn and turn[0].event != "import":
                stored[target] = By(turn[0].author, turn[0].door)
        for kind in {item.target.kind for item in items if item.message is None and item.target.kind}:
            ids = [item.target.id for item in items if item.target.kind == kind]
            firsts = await self._capabilities.traces.firsts(db, kind, ids)
            stored |= {Target(kind, item_id): by for item_id, by in firsts.items()}
        return stored


@dataclass(slots=True)
class _Tree:
    """Builds the tree of sources; an item that is its own source, directly or not, is named but not followed."""

    found: dict[Target, NamedItem | None]
    stored_by: dict[Target, By]
    held: set[Target]
    is_whole: bool = True

    def grown(self, targets: Sequence[Target]) -> tuple[Source, ...]:
        sources = []
        for target in dict.fromkeys(targets):
            if target not in self.found:
                self.is_whole = False
            else:
                sources.append(self._source(target))
        return tuple(sources)

    def _source(self, target: Target) -> Source:
        item = self.found[target]
        if item is None:
            return Source(str(target), "gone")
        by = self.stored_by.get(item.target)
        is_held = item.target in self.held
        source = Source(
            str(item.target),
            "held" if is_held else _state(item, ()),
            None if is_held else item.text,
            item.at,
            item.speaker,
            by and by.author,
            by and by.door,
            session_id=item.session_id,
        )
        followed, self.found[target] = item.sources, replace(item, sources=())
        return replace(source, sources=self.grown(followed))


def _state(item: NamedItem | None, events: Sequence[Event]) -> State:
    if item is not None:
        return "superseded" if item.memory is not None and item.memory.superseded_by is not None else "in_force"
    last = events[-1].event if events else None
    # Neither deleted nor forgotten: it has expired, and is still to be removed.
    return _ENDS.get(last or "", "expired")


def _event(trace: Trace) -> Event:
    stale = (trace.detail or {}).get("stale_id")
    by = None if stale is None else Mention(f"stale:{stale}", "in_force")
    despite = (trace.detail or {}).get(RELEASED)
    event = _EVENTS[trace.event] if despite is None else "released"
    return Event(trace.at, event, trace.author, trace.door, by=by, despite=tuple(despite or ()))


def _history_event(entry: HistoryEntry, mentions: Mapping[str, Mention], most: int) -> Event:
    detail = entry.detail or {}
    superseded_by = detail.get("superseded_by")
    expiry = [each and datetime.fromisoformat(each) for each in detail.get("expires_at", ())]
    return Event(
        entry.at,
        _EVENTS[entry.event],
        entry.author,
        entry.door,
        _cut(entry.old_memory, most),
        _cut(entry.new_memory, most),
        changed={"expires_at": Difference(*expiry)} if expiry else None,
        by=None if superseded_by is None else mentions[superseded_by],
        because=detail.get("because"),
        model=detail.get("model"),
        said=_cut(detail.get("said"), most),
        saw=tuple(mentions[memory_id] for memory_id in detail.get("saw", ())),
    )


def _cut(text: str | None, most: int) -> str | None:
    return None if text is None else text[:most]


def _with_differences(events: Sequence[Event], versions: Sequence[Version], memory: StoredMemory) -> list[Event]:
    """The same events; of changes, what became different besides the text. Each version ended with an event."""
    after: list[Version | StoredMemory] = [*versions[1:], memory]
    changed = {
        old.until: {
            name: Difference(getattr(old, name), getattr(new, name))
            for name in _DETAILS
            if getattr(old, name) != getattr(new, name)
        }
        for old, new in zip(versions, after, strict=False)
    }
    return [
        replace(event, changed={**changed.get(event.at, {}), **(event.changed or {})} or None)
        if event.event == "changed"
        else event
        for event in events
    ]
