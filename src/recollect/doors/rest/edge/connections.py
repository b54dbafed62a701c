"""Connections: how many are allowed, and how long one waits for its client.

The server below has no limit of its own: clients that begin requests and never finish them would shut others out.
"""

import asyncio
import ipaddress
import json
import resource
from collections import Counter
from contextlib import suppress
from enum import Enum
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.doors.rest.edge import heads

MAX_CONNECTIONS = 4096

# Descriptors for whatever is no connection of a client: the database, files, providers.
RESERVED_DESCRIPTORS = 64

# The head of a request, from its first byte or from the connection's beginning.
HEAD_SECONDS = 10.0

# Longer than clients keep an idle connection: else one may be closed just as the next request is sent on it.
KEEP_ALIVE_SECONDS = 75

# A client that takes nothing of its answer for so long has gone.
UNREAD_SECONDS = 60.0

SWEEP_SECONDS = 1.0

# What the console's own pages look like; no page of it is reached here.
_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{title} · Recollect</title>
  <link rel="stylesheet" href="/console/static/console.css">
</head>
<body>
  <header class="top"><a class="brand" href="/console">Recollect</a></header>
  <main id="main">
    <h1>{title}</h1>
    <p class="fault" role="alert">{sentence}</p>
    <p><a href="/console/recall">Ask another question</a></p>
  </main>
</body>
</html>
"""
_OF_PAGES = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'self'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\nCache-Control: no-store\r\n"
)
_OF_JSON = "Content-Type: application/json\r\n"
_TOO_SLOW = "The head of the request did not arrive in time"
_FULL = "Too many connections at once: try again in a moment"
_NO_HTTP = "This is not a valid HTTP request"


class Waiting(Enum):
    """What a connection waits for its client to do."""

    UNFINISHED = "a whole request"
    IDLE = "the next request"
    UNREAD = "the client to take its answer"


def limit_by_descriptors(others: int) -> int:
    """How many connections this process may have, given that so many descriptors are needed for other connections."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    taken = sum(1 for _ in Path("/dev/fd").iterdir())
    return max(8, min(MAX_CONNECTIONS, allowed - taken - others - RESERVED_DESCRIPTORS))


class Connections:
    """Every connection of a server process, and since when each waits for its client.

    One address has at most half of them, unless it is a proxy's: then it stands for many.
    """

    def __init__(self, limit: int, proxies: tuple[str, ...] = ()) -> None:
        self._limit = limit
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]
        self._addresses: dict[GuardedProtocol, str] = {}
        self._count: Counter[str] = Counter()
        self._since: dict[Waiting, dict[GuardedProtocol, float]] = {state: {} for state in Waiting}
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._addresses)

    def add(self, connection: "GuardedProtocol", address: str) -> bool:
        """Whether there is room, which the one makes that has waited longest; first among those of the same address."""
        is_full = len(self) >= self._limit
        has_many = self._count[address] >= max(1, self._limit // 2)
        if has_many:
            with suppress(ValueError):
                has_many = not any(ipaddress.ip_address(address) in network for network in self._proxies)
        if is_full or has_many:
            waiting = chain(self._since[Waiting.UNFINISHED], self._since[Waiting.IDLE])
            longest = next((one for one in waiting if not has_many or self._addresses[one] == address), None)
            if longest is None:
                return False
            longest.drop()
        self._addresses[connection] = address
        self._count[address] += 1
        self.wait(connection, Waiting.UNFINISHED)
        return True

    def remove(self, connection: "GuardedProtocol") -> None:
        """Its room is free."""
        self.work(connection)
        self._since[Waiting.UNREAD].pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]

    def wait(self, connection: "GuardedProtocol", state: Waiting) -> None:
        """It waits from now on, or still does."""
        if connection not in self._addresses or connection in self._since[state]:
            return
        if state is not Waiting.UNREAD:
            self.work(connection)
        self._since[state][connection] = connection.loop.time()
        if self._sweep is None:
            self._sweep = connection.loop.call_later(SWEEP_SECONDS, self._close_late, connection.loop)

    def work(self, connection: "GuardedProtocol") -> None:
        """A request of it is being answered."""
        self._since[Waiting.UNFINISHED].pop(connection, None)
        self._since[Waiting.IDLE].pop(connection, None)

    def read_on(self, connection: "GuardedProtocol") -> None:
        """Its client takes its answer again."""
        self._since[Waiting.UNREAD].pop(connection, None)

    def _close_late(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = None
        now = loop.time()
        limits = {Waiting.UNFINISHED: HEAD_SECONDS, Waiting.IDLE: KEEP_ALIVE_SECONDS, Waiting.UNREAD: UNREAD_SECONDS}
        late = []
        for state, since in self._since.items():
            for connection, began in since.items():
                if now - began < limits[state]:
                    break
                late.append((connection, state))
        for connection, state in late:
            if state is Waiting.UNFINISHED:
                connection.give_up()
            else:
                connection.drop()
        if any(self._since.values()):
            self._sweep = loop.call_later(SWEEP_SECONDS, self._close_late, loop)


class GuardedProtocol(H11Protocol):
    """HTTP on one connection, known to the others."""

    guard: Connections

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = heads.StrictConnection(h11.SERVER, heads.MAX_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refused if everybody else is at work."""
        super().connection_made(transport)
        if not self.guard.add(self, self.client[0] if self.client else ""):
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        """Whichever side closed it."""
        self.guard.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The first byte of a request starts its clock; the last of its head stops it."""
        super().data_received(data)
        self._settle()

    def handle_events(self) -> None:
        """Read on, unless a head is not to be read."""
        try:
            super().handle_events()
        except heads.Refused as refusal:
            self.refuse(refusal.status, refusal.sentence, is_page=refusal.is_page)

    def send_400_response(self, msg: str) -> None:
        """In the shape that all our errors have; an answer that has begun only ends."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.refuse(HTTPStatus.BAD_REQUEST, _NO_HTTP)
        else:
            self.drop()

    def on_response_complete(self) -> None:
        """The next request may have arrived already."""
        super().on_response_complete()
        self._settle()

    def pause_writing(self) -> None:
        """The client does not take its answer as fast as it is made."""
        super().pause_writing()
        self.guard.wait(self, Waiting.UNREAD)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self.guard.read_on(self)

    def drop(self) -> None:
        """Close it now; nothing is lost, because nothing is under way or the client does not read it."""
        self.guard.remove(self)
        self.transport.abort()

    def give_up(self) -> None:
        """Close it, and say why if a request had begun."""
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, _TOO_SLOW)
        else:
            self.drop()

    def refuse(self, status: HTTPStatus, sentence: str, *, is_page: bool = False) -> None:
        """Say why, and close it."""
        self.guard.remove(self)
        told = _PAGE.format(title="Too long", sentence=sentence) if is_page else json.dumps({"detail": sentence})
        body, of_kind = told.encode(), _OF_PAGES if is_page else _OF_JSON
        closing = f"Connection: close\r\n{of_kind}Content-Length: {len(body)}\r\n\r\n"
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{closing}"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _settle(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.guard.work(self)
        elif self.cycle is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.guard.wait(self, Waiting.IDLE)
        else:
            self.guard.wait(self, Waiting.UNFINISHED)


def protocol(connections: Connections) -> type[GuardedProtocol]:
    """The protocol of a server whose connections these are."""
    return type("Protocol", (GuardedProtocol,), {"guard": connections})
