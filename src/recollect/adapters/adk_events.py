"""Google ADK's sessions and events as ours: where each is kept, and an event as a message and back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from uuid import UUID, uuid5

from google.adk.events.event import Event
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from google.genai import types

from recollect.adapters.session_log import FORMAT, payload_of, storable
from recollect.checks import MAX_IDENTIFIER_CHARACTERS
from recollect.errors import Invalid

PREFIX = "adk"

# In the metadata of a session, beside its state: keys that begin so are never stored, so no state has them.
UPDATED = State.TEMP_PREFIX + "last_update_time"
LAST = State.TEMP_PREFIX + "last_event"

# In the metadata of messages and memories, to recall by.
APP = "app_name"

_MESSAGES_OF_EVENTS = UUID("5b0c1b5e-6c34-5d0e-9c53-6d9c4f3f6f0a")


@dataclass(frozen=True, slots=True)
class Place:
    """What is kept for an app: its state, the state of a user in it, or a session of that user."""

    app_name: str
    user_id: str | None = None
    session_id: str | None = None
    """Empty for events that were remembered without their session."""

    @property
    def id(self) -> str:
        """The session of ours, such as `adk:weather:anna:trip-7`."""
        names = (self.app_name, self.user_id, self.session_id)
        quoted = [name.replace("%", "%25").replace(":", "%3A") for name in names if name is not None]
        joined = ":".join([PREFIX, *quoted])
        if len(joined) > MAX_IDENTIFIER_CHARACTERS:
            raise Invalid(
                f"{joined[:64]}... is longer than {MAX_IDENTIFIER_CHARACTERS} characters: "
                "choose a shorter app name, user id or session id"
            )
        return joined

    @classmethod
    def of(cls, session_id: str) -> "Place | None":
        """None if the session is not one of ADK's."""
        prefix, *quoted = session_id.split(":")
        if prefix != PREFIX or not 1 <= len(quoted) <= 3:
            return None
        place = cls(*map(unquote, quoted))
        return place if place.id == session_id else None

    def fields(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The session to begin; the state of an app is no user's."""
        owner = self.id if self.user_id is None else self.user_id
        return {"id": self.id, "user_id": owner, "agent_id": self.app_name, "metadata": state}


@dataclass(frozen=True, slots=True)
class Stored:
    """A session of ours, read as ADK's: its own state, and when it last changed."""

    place: Place
    state: dict[str, Any]
    updated: float
    last: str | None = ""
    """The message of the last event, empty if there is none: whoever adds one says which is the last that they know.

    None in a session that another door began."""

    @classmethod
    def of(cls, place: Place, session: Mapping[str, Any]) -> "Stored":
        """One that another door began has no time of ADK's."""
        state = dict(session["metadata"] or {})
        updated, last = state.pop(UPDATED, None), state.pop(LAST, None)
        return cls(place, state, _timestamp(session["updated_at"]) if updated is None else float(updated), last)

    def metadata(self) -> dict[str, Any]:
        """What is stored of it."""
        return {**self.state, UPDATED: self.updated, LAST: self.last}

    def session(self, shared: Mapping[str, Any]) -> Session:
        """Without events."""
        place = self.place
        session = Session(
            id=place.session_id or "",
            app_name=place.app_name,
            user_id=place.user_id or "",
            state={**self.state, **shared},
            last_update_time=self.updated,
        )
        session._storage_update_marker = self.last
        return session


def prefixed(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an app or a user, as its sessions show it."""
    return {prefix + name: value for name, value in state.items()}


def changed_by(place: Place, event: Event) -> dict[str, Any]:
    """What an event changes in the metadata of its session, and of those of its app and its user."""
    deltas = extract_json_safe_state_delta(event.actions.state_delta)
    others = {Place(place.app_name): deltas["app"], Place(place.app_name, place.user_id): deltas["user"]}
    return {
        "metadata": {**deltas["session"], UPDATED: event.timestamp, LAST: message_id(place, event)},
        "other_metadata": {other.id: delta for other, delta in others.items() if delta},
        "keep_null": True,
    }


def message_id(place: Place, event: Event) -> str:
    """The same for the same event, so that it is stored once; an event may be in several sessions."""
    return str(uuid5(_MESSAGES_OF_EVENTS, f"{place.id}\n{event.id}"))


def message_of(place: Place, event: Event, metadata: Mapping[str, object] | None = None) -> dict[str, Any]:
    """What was said is searched; the payload is the event itself, as a text, which may hold NUL."""
    return {
        "id": message_id(place, event),
        "role": "user" if event.author == "user" else "assistant",
        "speaker": event.author.strip() or None,
        "text": storable(text_of(event.content)) or None,
        "at": datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
        "metadata": {**(metadata or {}), APP: place.app_name, FORMAT: PREFIX},
        "payload": event.model_dump_json(exclude_none=True),
    }


def event_of(message: Mapping[str, Any]) -> Event:
    """A payload of another framework is no event."""
    if (payload := payload_of(message, PREFIX)) is not None:
        return Event.model_validate_json(payload)
    is_user = message["role"] == "user"
    return Event(
        id=message["id"],
        author="user" if is_user else message["speaker"] or message["role"],
        content=types.Content(role="user" if is_user else "model", parts=[types.Part(text=message["text"])]),
        timestamp=said_at(message),
    )


def said_at(message: Mapping[str, Any]) -> float:
    """An event's own time, to the last digit."""
    if (payload := payload_of(message, PREFIX)) is not None:
        return float(json.loads(payload)["timestamp"])
    return _timestamp(message["at"])


def text_of(content: types.Content | None) -> str:
    """What was said, without thoughts, calls of tools and media."""
    parts: Iterable[types.Part] = (content.parts if content else None) or ()
    return "\n".join(part.text for part in parts if part.text and part.text.strip() and not part.thought)


def _timestamp(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
