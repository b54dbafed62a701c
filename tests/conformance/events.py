"""Events of a stream, kept so that a client that comes back gets what it missed."""

from typing import Any

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore


class EventList(EventStore):
    """In memory; an event's id is its place in the list."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events) - 1)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        if last >= len(self._events):
            return None
        stream = self._events[last][0]
        for place, (stream_id, message) in enumerate(self._events[last + 1 :], last + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(place)))
        return stream
