"""Limits of request bodies: size, duration, and how much is read before authentication."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from recollect.errors import AccessDenied

# The largest request: two texts of 16 MB each, with metadata, some of it escaped.
MAX_BODY_BYTES = 64 * 1024 * 1024

# A client that sends nothing for so long is gone, or wishes us ill.
MAX_SILENCE_SECONDS = 30.0

# A whole body of this size may be parsed to see whom it names.
SMALL_BYTES = 64 * 1024

# So much of a longer one is read while its sender is unknown; a thousand messages before the key have fewer values.
MAX_UNKNOWN_BYTES = 1024 * 1024
MAX_UNKNOWN_SECONDS = 10.0
MAX_TOKENS = 20_000

# Of all requests together whose senders are unknown, in one process.
MAX_UNKNOWN_TOTAL_BYTES = 32 * 1024 * 1024

Admit = Callable[[str, str], Awaitable[object]]

_TOO_LATE = "The body did not arrive in time: send it without pauses"
_KEY_TOO_LATE = "user_id and user_key did not arrive in time: put them first in the body, and send it without pauses"
_KEY_TOO_FAR = (
    "user_id and user_key are not at the beginning of this long body: put them before the other fields, or send the "
    "namespace's key as the header Authorization: Bearer KEY"
)
_NO_KEY = "This long body has no readable user_id and user_key: put them before the other fields"


def refuse_too_large(content_length: str, limit: int) -> None:
    """Refuse a body that is announced to be larger than the limit."""
    if content_length.isdecimal() and int(content_length) > limit:
        raise too_large(limit)


def too_large(limit: int) -> HTTPException:
    """The refusal of a body."""
    size = f"{limit // 1024 // 1024} MB" if limit >= 1024 * 1024 else f"{limit // 1024} kB"
    return HTTPException(413, f"The body is larger than the limit of {size}: send it in several requests")


def bounded(receive: Receive, limit: int) -> Receive:
    """A body of unannounced size is counted as it arrives, and must keep coming."""
    received = 0

    async def next_part() -> Message:
        nonlocal received
        if received < 0:
            return await receive()
        try:
            async with asyncio.timeout(MAX_SILENCE_SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, _TOO_LATE) from None
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit)
        if not message.get("more_body", False):
            # What comes after the body is the end of the connection, for which a handler may wait as long as it likes.
            received = -1
        return message

    return next_part


def _first(message: Message, receive: Receive) -> Receive:
    left = [message]

    async def next_part() -> Message:
        return left.pop() if left else await receive()

    return next_part


class UnknownSenders:
    """Bodies that hold their own credential: little of each is read until it is checked, and little of all together."""

    def __init__(self) -> None:
        self._held: dict[asyncio.Timeout, int] = {}

    async def introduced(self, receive: Receive, admit: Admit) -> Receive:
        """The same body from its beginning, once `admit` took its user_id and user_key, or if it is small and whole."""
        try:
            async with asyncio.timeout(MAX_UNKNOWN_SECONDS) as deadline:
                try:
                    beginning = await self._beginning(receive, admit, deadline)
                finally:
                    self._held.pop(deadline, None)
        except TimeoutError:
            raise HTTPException(408, _KEY_TOO_LATE) from None
        return _first(beginning, receive)

    async def whole(self, receive: Receive) -> Receive:
        """The same small body, once all of it has arrived."""
        body, is_whole = b"", False
        try:
            async with asyncio.timeout(MAX_UNKNOWN_SECONDS) as deadline:
                try:
                    while not is_whole:
                        message = await receive()
                        if message["type"] == "http.disconnect":
                            raise ClientDisconnect
                        body += message.get("body", b"")
                        is_whole = not message.get("more_body", False)
                        self._hold(deadline, len(body))
                finally:
                    self._held.pop(deadline, None)
        except TimeoutError:
            raise HTTPException(408, _TOO_LATE) from None
        return _first(_part(body, is_whole), receive)

    async def _beginning(self, receive: Receive, admit: Admit, deadline: asyncio.Timeout) -> Message:
        body, next_look, is_whole = b"", 0, False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
            if is_whole and len(body) <= SMALL_BYTES:
                return _part(body, is_whole)
            self._hold(deadline, len(body))
            if len(body) >= next_look or is_whole:
                next_look = 2 * len(body)
                credential = credential_in(body)
                if credential is not None:
                    await admit(*credential)
                    return _part(body, is_whole)
            if len(body) > MAX_UNKNOWN_BYTES:
                raise HTTPException(413, _KEY_TOO_FAR)
        raise AccessDenied(_NO_KEY)

    def _hold(self, deadline: asyncio.Timeout, size: int) -> None:
        """Note how much of a body is held. Who has waited longest goes first if that is too much of all together.

        A sender who puts the credential first hardly waits at all.
        """
        self._held[deadline] = size
        while sum(self._held.values()) > MAX_UNKNOWN_TOTAL_BYTES:
            oldest = next(iter(self._held))
            del self._held[oldest]
            # One that runs out just now goes anyway, and must not be set again.
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())


def _part(body: bytes, is_whole: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": not is_whole}


# Possessive, so that no text makes it look twice at a character.
_TOKEN = re.compile(rb'[ \t\r\n]*+("(?:[^"\\]++|\\.)*+"|[{}\[\]:,]|[^ \t\r\n"{}\[\]:,]++)', re.DOTALL)


def credential_in(beginning: bytes) -> tuple[str, str] | None:
    """The user_id and user_key of a JSON object of which this is the beginning; None if they are not in it.

    A look ahead, no judgement: the route parses the whole body and checks the credential again.
    """
    depth = position = 0
    name = last = b""
    found: dict[bytes, str] = {}
    for _ in range(MAX_TOKENS):
        token = _TOKEN.match(beginning, position)
        if token is None:
            return None
        position = token.end()
        before, last = last, token[1]
        if last in (b"{", b"["):
            depth += 1
        elif last in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and last == b":":
            name = before
        elif depth == 1 and before == b":" and name in _WANTED:
            try:
                text = json.loads(last)
            except ValueError:
                return None
            if not isinstance(text, str):
                return None
            found[name] = text
            if len(found) == len(_WANTED):
                return found[_WANTED[0]], found[_WANTED[1]]
    return None


_WANTED = (b'"user_id"', b'"user_key"')
