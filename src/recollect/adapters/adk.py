"""Google ADK: sessions with their states and events, and a memory that recalls from what is stored of a user."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from google.genai import types

from recollect import tasks
from recollect.adapters.adk_events import (
    APP,
    LAST,
    Place,
    Stored,
    changed_by,
    event_of,
    message_id,
    message_of,
    prefixed,
    said_at,
    text_of,
)
from recollect.adapters.connection import Connection
from recollect.adapters.session_log import PAGE, sessions
from recollect.checks import MAX_QUESTION_CHARACTERS, has_words
from recollect.errors import Conflict, Invalid, NotFound
from recollect.settings import Settings

DEFAULT_TOP_K = 10

_STALE = "The session was modified in storage since this object was read: get it again"


class _Service:
    """What both services have: a connection, which they let go of together with themselves."""

    _connection: Connection

    async def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        await tasks.in_thread(self._connection.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class RecollectSessionService(_Service, BaseSessionService):
    """Sessions of ADK are sessions of Recollect: every door and the memory service find what is said in them.

    The state of a session is its metadata; the states of an app and of its users are the metadata of sessions of their
    own. An event is stored together with what it changes in the states, or not at all.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._connection = Connection(url, key, namespace=namespace, settings=settings)

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Begin a session; raises AlreadyExistsError if the user has one of this id in the app."""
        place = Place(app_name, user_id, (session_id or "").strip() or platform_uuid.new_uuid())
        deltas = extract_json_safe_state_delta(state or {})
        new = Stored(place, deltas["session"], platform_time.get_time())
        if not await _begin(self._connection, place, new.metadata()):
            raise AlreadyExistsError(f"Session with id {place.session_id} already exists.")
        await self._share(Place(app_name), deltas["app"])
        await self._share(Place(app_name, user_id), deltas["user"])
        return new.session(await self._shared_state(place))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session with its events, or with the last of them; None if there is none."""
        place = Place(app_name, user_id, session_id.strip())
        stored = await self._find(place)
        if stored is None:
            return None
        session = stored.session(await self._shared_state(place))
        # After the state: a session with events that are newer than it takes no more, the reverse would go unnoticed.
        messages = [message async for message in self._newest_first(place, config or GetSessionConfig())]
        session.events = [event_of(message) for message in reversed(messages)]
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Sessions of an app, of one user or of all, without their events, the last active at the end."""
        stored = [each async for each in self._stored(app_name, user_id)]
        of_app = prefixed(State.APP_PREFIX, await self._state_of(Place(app_name)))
        of_user = {
            each.place.user_id: prefixed(State.USER_PREFIX, each.state)
            for each in stored
            if each.place.session_id is None
        }
        found = [
            each.session({**of_app, **of_user.get(each.place.user_id, {})}) for each in stored if each.place.session_id
        ]
        return ListSessionsResponse(
            sessions=sorted(found, key=lambda each: (each.last_update_time, each.user_id, each.id))
        )

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events for good; the states of the app and the user stay."""
        await self._connection.call_async("DELETE", "/sessions/{}", Place(app_name, user_id, session_id.strip()).id)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user in an app, without the prefix of its keys."""
        return await self._state_of(Place(app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event with what it changes in the states; one that is stored already is not stored again.

        Raises SessionNotFoundError, or StaleSessionError if others have added to the session since it was read.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        place = Place(session.app_name, session.user_id, session.id)
        await self._continue(place, session, event)
        session._storage_update_marker = message_id(place, event)
        session.last_update_time = event.timestamp
        if any(known.id == event.id for known in session.events):
            return event
        return self._commit_event_to_session(session, event)

    async def _continue(self, place: Place, session: Session, event: Event) -> None:
        known = await self._last_known(place, session)
        body = {"messages": [message_of(place, event)], "expected": {LAST: known}, **changed_by(place, event)}
        try:
            try:
                await self._connection.call_async("POST", "/sessions/{}/messages", place.id, json=body)
            except NotFound:
                # Somebody deleted them: a session begins with both.
                await self._share(Place(place.app_name), {})
                await self._share(Place(place.app_name, place.user_id), {})
                await self._connection.call_async("POST", "/sessions/{}/messages", place.id, json=body)
        except Conflict as refused:
            stored = await self._required(place)
            if stored.last == message_id(place, event):
                return
            if stored.last == known:
                raise
            raise StaleSessionError(_STALE) from refused

    async def _last_known(self, place: Place, session: Session) -> str:
        """The last event that a session object knows of; one that was not read from here is judged by its time."""
        if session._storage_update_marker is not None:
            return session._storage_update_marker
        stored = await self._required(place)
        known = message_id(place, session.events[-1]) if session.events else ""
        if stored.updated > session.last_update_time and stored.last != known:
            raise StaleSessionError(_STALE)
        if stored.last is None:
            change = {"metadata": {LAST: ""}, "expected": {LAST: None}}
            await self._connection.call_async("PATCH", "/sessions/{}", place.id, json=change)
        return stored.last or ""

    async def _required(self, place: Place) -> Stored:
        stored = await self._find(place)
        if stored is None:
            raise SessionNotFoundError(f"Session {place.session_id} not found.")
        return stored

    async def _newest_first(self, place: Place, wanted: GetSessionConfig) -> AsyncIterator[dict[str, Any]]:
        """The last messages, so many at most, back to the first that is too old."""
        left = wanted.num_recent_events
        before: str | None = None
        while left is None or left > 0:
            limit = PAGE if left is None else min(left, PAGE)
            params = {"limit": limit, "newest": True, "before": before}
            answer = await self._connection.call_async("GET", "/sessions/{}/messages", place.id, params=params)
            for message in reversed(answer["messages"]):
                if wanted.after_timestamp is not None and said_at(message) < wanted.after_timestamp:
                    return
                yield message
            if len(answer["messages"]) < limit:
                return
            before = answer["messages"][0]["id"]
            left = None if left is None else left - limit

    async def _stored(self, app_name: str, user_id: str | None) -> AsyncIterator[Stored]:
        """The sessions of an app and the states of its users, all in one list of ours."""
        async for session in sessions(self._connection, agent_id=app_name, user_id=user_id):
            if (place := Place.of(session["id"])) is not None and place.app_name == app_name:
                yield Stored.of(place, session)

    async def _find(self, place: Place) -> Stored | None:
        try:
            return Stored.of(place, await self._connection.call_async("GET", "/sessions/{}", place.id))
        except NotFound:
            return None

    async def _state_of(self, place: Place) -> dict[str, Any]:
        stored = await self._find(place)
        return {} if stored is None else stored.state

    async def _shared_state(self, place: Place) -> dict[str, Any]:
        of_app, of_user = await asyncio.gather(
            self._state_of(Place(place.app_name)), self._state_of(Place(place.app_name, place.user_id))
        )
        return prefixed(State.APP_PREFIX, of_app) | prefixed(State.USER_PREFIX, of_user)

    async def _share(self, place: Place, delta: dict[str, Any]) -> None:
        """Add to the state of an app or of a user, which begins with it."""
        if not await _begin(self._connection, place, delta) and delta:
            change = {"metadata": delta, "keep_null": True}
            await self._connection.call_async("PATCH", "/sessions/{}", place.id, json=change)


class RecollectMemoryService(_Service, BaseMemoryService):
    """Recalls what bears on a question from what is stored of a user in an app, or with `all_apps` through any door.

    Sessions of `RecollectSessionService` are found as soon as they are stored; to add them changes nothing.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        namespace: str | None = None,
        settings: Settings | None = None,
        top_k: int = DEFAULT_TOP_K,
        min_relevance: float | str | None = "default",
        all_apps: bool = False,
    ) -> None:
        self._connection = Connection(url, key, namespace=namespace, settings=settings)
        self._top_k = top_k
        self._min_relevance = min_relevance
        self._all_apps = all_apps

    async def add_session_to_memory(self, session: Session) -> None:
        """Store what was said in a session, as often as you like: each event is stored once."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store what was said in some events, each once; recall can filter by the metadata."""
        place = Place(app_name, user_id, (session_id or "").strip())
        said = {message_id(place, event): event for event in events if text_of(event.content) and not event.partial}
        if not said:
            return
        messages = [message_of(place, event, custom_metadata) for event in said.values()]
        await _begin(self._connection, place, Stored(place, {}, platform_time.get_time()).metadata())
        for start in range(0, len(messages), PAGE):
            await self._add(place, messages[start : start + PAGE])

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as long-term memories of the user, one by one."""
        for number, entry in enumerate(memories):
            if not (text := text_of(entry.content)):
                raise Invalid(f"memories[{number}] has no text: give its content a part with text")
            metadata = {**entry.custom_metadata, **(custom_metadata or {}), APP: app_name}
            if entry.author:
                metadata["author"] = entry.author
            at = _moment(entry.timestamp)
            if entry.timestamp and at is None:
                metadata["timestamp"] = entry.timestamp
            body = {
                "messages": text,
                "category": "semantic",
                "user_id": user_id,
                "metadata": metadata,
                "at": at,
            }
            await self._connection.call_async("POST", "/ltm/memories", json=body)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What bears on a question, best first; nothing if nothing is relevant."""
        asked = query[:MAX_QUESTION_CHARACTERS]
        if not has_words(asked):
            return SearchMemoryResponse()
        body = {
            "query": asked,
            "user_id": user_id,
            "metadata": None if self._all_apps else {APP: app_name},
            "min_relevance": self._min_relevance,
            # The session service has stored the question as well, and it is no answer to itself.
            "top_k": self._top_k + 1,
        }
        found = await self._connection.call_async("POST", "/recall", json=body)
        others = [memory for memory in found["memories"] if memory["text"].strip() != query.strip()]
        return SearchMemoryResponse(memories=[_entry(memory, found["degraded"]) for memory in others[: self._top_k]])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete what `search_memory` found for good, an event also from its session; what is not there stays away."""
        if not memory_id:
            return
        kind, _, name = memory_id.partition(":")
        if kind == "message":
            await self._delete_message(app_name, user_id, name)
        elif kind == "memory":
            await self._delete_long_term(app_name, user_id, name)
        else:
            raise Invalid(f"{memory_id} is not an id of a message or a memory: pass the id of an entry that was found")

    async def _add(self, place: Place, messages: list[dict[str, Any]]) -> None:
        path = "/sessions/{}/messages"
        try:
            await self._connection.call_async("POST", path, place.id, json={"messages": messages})
        except Conflict:
            # An event that was stored in another form, with the state that it had then: it stays as it is.
            new = [message for message in messages if await self._session_of(message["id"]) is None]
            if len(new) == len(messages):
                raise
            if new:
                await self._connection.call_async("POST", path, place.id, json={"messages": new})

    async def _session_of(self, message: str) -> str | None:
        try:
            found = await self._connection.call_async("GET", "/messages/{}", message)
        except NotFound:
            return None
        return str(found["session_id"])

    async def _delete_message(self, app_name: str, user_id: str, name: str) -> None:
        if (session_id := await self._session_of(name)) is None:
            return
        with suppress(NotFound):
            session = await self._connection.call_async("GET", "/sessions/{}", session_id)
            if session["user_id"] == user_id and (self._all_apps or session["agent_id"] == app_name):
                await self._connection.call_async("DELETE", "/sessions/{}/messages/{}", session_id, name)

    async def _delete_long_term(self, app_name: str, user_id: str, name: str) -> None:
        with suppress(NotFound):
            memory = await self._connection.call_async("GET", "/ltm/memories/{}", name)
            if memory["user_id"] == user_id and (self._all_apps or memory["metadata"].get(APP) == app_name):
                await self._connection.call_async("DELETE", "/ltm/memories/{}", name)


async def _begin(connection: Connection, place: Place, state: Mapping[str, Any]) -> bool:
    """Whether it is new."""
    try:
        await connection.call_async("POST", "/sessions", json=place.fields(state))
    except Conflict:
        return False
    return True


def _entry(memory: Mapping[str, Any], degraded: str | None) -> MemoryEntry:
    metadata = {"kind": memory["kind"], "relevance": memory["relevance"], "session_id": memory["session_id"]}
    if degraded is not None:
        metadata["degraded"] = degraded
    role = "user" if memory["role"] == "user" else "model"
    return MemoryEntry(
        id=f"{memory['kind']}:{memory['id']}",
        content=types.Content(role=role, parts=[types.Part(text=memory["text"])]),
        author=memory["speaker"] or (memory["metadata"] or {}).get("author"),
        timestamp=memory["at"],
        custom_metadata={**(memory["metadata"] or {}), **metadata},
    )


def _moment(timestamp: str | None) -> str | None:
    """In ADK a time without a zone is local, and a text that is no time is allowed."""
    if timestamp is None:
        return None
    with suppress(ValueError):
        return datetime.fromisoformat(timestamp).astimezone().isoformat()
    return None
