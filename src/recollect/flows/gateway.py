"""The gateway: chats and resources of one user in one app and project, and recall among them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from recollect import checks
from recollect.errors import Invalid, NotFound
from recollect.flows.accounts.access import User
from recollect.flows.chat_ids import CHAT, mark
from recollect.flows.defence.masking import MasksSecrets, masks
from recollect.flows.indexing.indexer import Indexer
from recollect.flows.indexing.passage_writer import EmbeddingStatus, PassageWriter
from recollect.flows.long_term.pinned import Pinned, PinnedMemories
from recollect.flows.remember import Remember, Turn
from recollect.flows.results import Results
from recollect.flows.search.recall import Recall
from recollect.flows.search.recollection import Memory
from recollect.flows.search.relevance import Floor
from recollect.identifiers import uuid_at
from recollect.memory.changes import Change, Changes, Event
from recollect.memory.index.passages import Passages, Source
from recollect.memory.index.search import Scope
from recollect.memory.log import NewMessage
from recollect.memory.memories import MemoryScope
from recollect.memory.resources import MAX_URI_CHARACTERS, Resource, Resources
from recollect.memory.sessions import SessionOwner, Sessions
from recollect.storage.database import Database

DEFAULT = "default"
"""The app and the project to which everything belongs that comes by another door."""

CURRENT_CHAT, RESOURCES, ALL_USER_MEMORY = SCOPES = ("current_chat", "resources", "all_user_memory")
"""Where to search, the narrowest first."""

ROLES = ("user", "assistant")

DEFAULT_TOP_K = 8
MAX_TOP_K = 100
MAX_MESSAGES = 1000
MAX_SESSION_CHARACTERS = 230
"""What a stored session id may have, less the mark of an owner, rounded down."""
LAST_TIMESTAMP = 253_402_300_799_999
"""The end of the year 9999, the last that a datetime can say."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory a request is about: a user of a namespace, in one app and project."""

    namespace: str
    user_id: str
    app_id: str = DEFAULT
    project_id: str = DEFAULT

    @classmethod
    def of(cls, user: User, app_id: str, project_id: str) -> "Owner":
        """A user who was let in, in an app and a project that have usable names."""
        checks.identifier(app_id, "app_id")
        return cls(user.namespace, user.user_id, app_id, checks.identifier(project_id, "project_id"))

    @property
    def realm(self) -> str:
        """App and project in one word."""
        both = [self.app_id, self.project_id]
        return "" if both == [DEFAULT, DEFAULT] else json.dumps(both, ensure_ascii=False)

    @property
    def mark(self) -> str:
        """What follows the ids of this owner's chats in the log."""
        return mark(self.user_id, self.realm)

    def stored(self, session_id: str) -> str:
        """The id of a chat in the log: one that no other user, app, project or door can have."""
        return session_id + self.mark


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a chat; the timestamp is in milliseconds since 1970."""

    sender_id: str
    role: str
    timestamp: int
    content: str


@dataclass(frozen=True, slots=True)
class Added:
    """How many messages were new, how many were there already, and the id that other doors know the chat by."""

    added: int
    duplicates: int
    stored_as: str


@dataclass(frozen=True, slots=True)
class Found:
    """Something recalled: the id of its chat, the narrowest of the scopes that found it, and the resource it is of."""

    memory: Memory
    session_id: str | None
    source_scope: str
    resource: Resource | None


@dataclass(frozen=True, slots=True)
class PutResource:
    """A stored resource, and whether it is embedded already; `degraded` says why it could not be."""

    resource: Resource
    embedding_status: EmbeddingStatus
    degraded: str | None = None


class Gateway(MasksSecrets):
    """A user's second memory: each completed turn goes in, and what matters to the next comes out."""

    def __init__(
        self,
        database: Database,
        sessions: Sessions,
        resources: Resources,
        passages: Passages,
        changes: Changes,
        passage_writer: PassageWriter,
        remember: Remember,
        recall: Recall,
        pinned: PinnedMemories,
        indexer: Indexer,
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._resources = resources
        self._passages = passages
        self._changes = changes
        self._passage_writer = passage_writer
        self._remember = remember
        self._recall = recall
        self._pinned = pinned
        self._indexer = indexer

    async def search(
        self,
        owner: Owner,
        query: str,
        scopes: Sequence[str],
        *,
        conversation_id: str | None = None,
        top_k: int = DEFAULT_TOP_K,
        min_relevance: Floor | None = None,
        as_of: datetime | None = None,
    ) -> Results[Found]:
        """What answers a prompt in any of some scopes, or would have `as_of` a time, each thing once, the best first.

        A prompt may be longer than a question: its beginning is searched by. One without any word finds nothing.
        """
        checks.text(query, "query")
        checks.between(top_k, 1, MAX_TOP_K, "top_k")
        query = query[: checks.MAX_QUESTION_CHARACTERS]
        then = checks.as_of(as_of)
        places = await self._places(owner, scopes, conversation_id)
        if not checks.has_words(query):
            return Results()
        searched = [replace(place, as_of=then) for place in places.values()]
        recollections = await self._recall.in_each(
            owner.namespace, query, searched, top_k=top_k, min_relevance=min_relevance
        )
        found: dict[tuple[str, str], tuple[str, Memory]] = {}
        for name, recollection in zip(places, recollections, strict=True):
            for memory in recollection.memories:
                found.setdefault((memory.kind, memory.id), (name, memory))
        best = sorted(found.values(), key=lambda each: -each[1].score)[:top_k]
        resources: dict[UUID, Resource] = {}
        if ids := [UUID(memory.id) for _, memory in best if memory.kind == "resource"]:
            async with self._database.reading(owner.namespace) as db:
                resources = await self._resources.find(db, ids)
        shown = [
            Found(
                memory,
                None if memory.session_id is None else memory.session_id.removesuffix(owner.mark),
                scope,
                resources.get(UUID(memory.id)) if memory.kind == "resource" else None,
            )
            for scope, memory in best
        ]
        degraded = next((each.degraded for each in recollections if each.degraded is not None), None)
        return Results(shown, degraded)

    async def pinned(self, owner: Owner, as_of: datetime | None = None) -> Pinned:
        """The user's pinned memories for a prompt. Like all long-term memories, they are of the default project."""
        if owner.realm:
            return Pinned([], 0, 0)
        return await self._pinned.of(owner.namespace, MemoryScope(user_id=owner.user_id), as_of=as_of)

    @masks("messages")
    async def add(self, owner: Owner, session_id: str, messages: Sequence[Said]) -> Added:
        """Append messages to a chat, all or none; those that it has already are left out."""
        _check_session_id(session_id)
        checks.between(len(messages), 1, MAX_MESSAGES, "the number of messages")
        for number, message in enumerate(messages):
            checks.identifier(message.sender_id, f"messages[{number}].sender_id")
            checks.one_of(message.role, ROLES, f"messages[{number}].role")
            checks.between(message.timestamp, 1, LAST_TIMESTAMP, f"messages[{number}].timestamp")
            checks.text(message.content, f"messages[{number}].content")
        stored = owner.stored(session_id)
        new = tuple(
            NewMessage(
                message.role,
                message.content,
                speaker=message.sender_id,
                at=_EPOCH + timedelta(milliseconds=message.timestamp),
                # The same whenever the message comes, so that it is written once.
                id=uuid_at(message.timestamp, stored, message.sender_id, message.role, message.content),
            )
            for message in messages
        )
        turn = Turn(stored, new, owner_if_new=owner.user_id, realm=owner.realm)
        written = await self._remember.turn(owner.namespace, turn)
        return Added(len(written), len(messages) - len(written), stored)

    async def flush(self, owner: Owner, session_id: str) -> str | None:
        """Return when everything that was added to a chat is embedded, or why only keyword search finds it."""
        _check_session_id(session_id)
        if not await self._exists(owner, session_id):
            raise NotFound(f"This user has no session {session_id} in this app and project: add messages to it first")
        return await self._indexer.flush_session(owner.namespace, owner.user_id, owner.stored(session_id))

    @masks("uri", "text", "title", "metadata")
    async def put_resource(
        self,
        owner: Owner,
        uri: str,
        text: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> PutResource:
        """Store a text under a URI; what was stored there before is forgotten."""
        if len(checks.text(uri, "resource_uri")) > MAX_URI_CHARACTERS:
            raise Invalid(f"resource_uri is longer than {MAX_URI_CHARACTERS:,} characters")
        checks.text(text, "text")
        checks.optional_text(title, "title")
        encoded = checks.metadata(metadata)
        prepared = await self._passage_writer.prepare(owner.namespace, text, title)
        async with self._database.transaction(owner.namespace) as tx:
            resource = await self._resources.put(tx, owner.user_id, owner.realm, uri, text, title, encoded)
            item_id = str(resource.id)
            await self._passages.remove_items(tx, "resource", [item_id])
            source = Source(
                "resource",
                item_id,
                prepared.excerpts,
                resource.updated_at,
                owner=owner.user_id,
                metadata=encoded,
                realm=owner.realm,
            )
            await self._passage_writer.add(tx, source, prepared)
            event: Event = "update" if resource.replaced else "add"
            await self._changes.record(tx, [Change(event, "resource", item_id)])
        self._passage_writer.committed(owner.namespace, prepared)
        return PutResource(resource, prepared.embedding_status, prepared.degraded)

    async def _places(self, owner: Owner, scopes: Sequence[str], conversation_id: str | None) -> dict[str, Scope]:
        """Where the scopes that were asked for lie, the narrowest first; a chat without messages lies nowhere."""
        if not scopes:
            raise Invalid(f"scope is empty: name one or more of {', '.join(SCOPES)}")
        for scope in scopes:
            checks.one_of(scope, SCOPES, "scope")
        places = {}
        if CURRENT_CHAT in scopes:
            if conversation_id is None:
                raise Invalid(f"conversation_id is missing: the scope {CURRENT_CHAT} needs it")
            checks.identifier(conversation_id, "conversation_id")
            chat = _check_session_id(CHAT + conversation_id)
            if await self._exists(owner, chat):
                places[CURRENT_CHAT] = Scope(owner=owner.user_id, session_id=owner.stored(chat), realm=owner.realm)
        if RESOURCES in scopes:
            places[RESOURCES] = Scope(owner=owner.user_id, kinds=("resource",), realm=owner.realm)
        if ALL_USER_MEMORY in scopes:
            places[ALL_USER_MEMORY] = Scope(owner=owner.user_id, realm=owner.realm)
        return places

    async def _exists(self, owner: Owner, session_id: str) -> bool:
        """Whether this owner has added to a chat."""
        stored = owner.stored(session_id)
        async with self._database.reading(owner.namespace) as db:
            return (await self._sessions.owners_of(db, [stored])).get(stored) == SessionOwner(
                owner.user_id, owner.realm
            )


def _check_session_id(session_id: str) -> str:
    checks.identifier(session_id, "session_id")
    if not session_id.startswith(CHAT) or session_id == CHAT:
        raise Invalid(f"session_id must be {CHAT} followed by the id of the conversation, such as {CHAT}7f3a")
    if len(session_id) > MAX_SESSION_CHARACTERS:
        raise Invalid(f"session_id is longer than {MAX_SESSION_CHARACTERS} characters")
    return session_id
