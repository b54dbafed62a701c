"""The gate before every HTTP route, REST and MCP alike: who comes in, into which namespace, with how large a body."""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect import logs, telemetry
from recollect.doors.loopback import is_loopback
from recollect.doors.rest import problems
from recollect.engine import Engine
from recollect.errors import AccessDenied, RecollectError
from recollect.identifiers import uuid7

# The largest request: two texts of 16 MB each, with metadata, some of it escaped.
MAX_BODY_BYTES = 64 * 1024 * 1024

# A client that sends nothing for so long is gone, or wishes us ill.
MAX_SILENCE_SECONDS = 30.0

# Routes that need no key, because they say nothing of anybody's memory.
PUBLIC = frozenset({"/", "/health", "/docs", "/openapi.json"})

ASSETS = "/docs/"

# Of callers whose rate is limited; a full bucket again for each is better than memory that only grows.
MAX_BUCKETS = 10_000

# As they go over the wire: every answer has them, and those that a route sets itself it keeps.
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)

POLICY = b"content-security-policy"
API_POLICY = b"default-src 'none'; frame-ancestors 'none'"

# The page at /docs runs a script of its own and paints itself.
DOCS_POLICY = (
    b"default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
)

_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = logging.getLogger("recollect.requests")


class Turned(Exception):
    """A request that is not let in."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(slots=True)
class _Bucket:
    """How many requests a key may still make; it fills up evenly."""

    left: float
    at: float = field(default_factory=time.monotonic)


class Gate:
    """An ASGI application around another one.

    Paths `with_user_key` bring credentials of their own in the body; until it is read, the address tells callers apart.
    """

    def __init__(self, app: ASGIApp, engine: Engine, on_loopback: bool, with_user_key: frozenset[str]) -> None:
        self._app = app
        self._with_user_key = with_user_key
        self._engine = engine
        self._on_loopback = on_loopback
        self._per_minute = engine.settings.rate_limit_per_minute
        self._buckets: dict[str, _Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        with logs.handling(request_id), telemetry.incoming(headers) as span:
            await self._serve(_Request(scope, request_id, time.perf_counter(), span), headers, receive, send)

    async def _serve(self, request: "_Request", headers: Headers, receive: Receive, send: Send) -> None:
        scope = request.scope
        try:
            _check_length(headers)
            namespace = await self._admitted(scope, headers)
            scope.setdefault("state", {}).update(namespace=namespace, request_id=request.id)
            await self._app(scope, _bounded(receive), request.answering(send))
        except (Turned, RecollectError) as refusal:
            await _refused(refusal)(scope, receive, request.answering(send))
        except ClientDisconnect:
            log.debug("a client left before its request was whole", extra={"request_id": request.id})
        except Exception:  # the last one who can answer in the contract's shape
            log.exception("a request failed unexpectedly", extra={"request_id": request.id})
            if not request.is_answered:
                await problems.problem(500, _UNEXPECTED)(scope, receive, request.answering(send))
        finally:
            request.tell()

    async def _admitted(self, scope: Scope, headers: Headers) -> str | None:
        """The namespace that a request may see; None where a route needs none."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return await self._by_key(token.strip(), _address(scope))
        path = scope["path"]
        if path in self._with_user_key:
            self._spend(_address(scope))
            return None
        if path in PUBLIC or path.startswith(ASSETS):
            return None
        return await self._without_key(headers)

    async def _by_key(self, token: str, address: str) -> str:
        credential = await self._engine.access.credential(token)
        if credential is None or credential.user_id is not None:
            self._spend(address)
            raise AccessDenied("The key is not valid: it is unknown, revoked, or not a key of a namespace")
        self._spend(credential.key_id)
        return credential.namespace

    async def _without_key(self, headers: Headers) -> str:
        """On loopback a namespace without keys is open; a page of another site must not reach it through a browser."""
        namespace = self._engine.settings.namespace
        if not self._on_loopback or not await self._engine.access.is_open(namespace):
            raise AccessDenied(
                "A key is needed: send the header Authorization: Bearer KEY, with one of `recollect keys`"
            )
        for name, status in (("host", 421), ("origin", 403)):
            address = headers.get(name)
            if address is not None and not is_loopback(_host_of(address)):
                raise Turned(
                    status, f"Without a key, {name.title()} must be an address of loopback, not {address[:100]!r}"
                )
        self._spend(f"open:{namespace}")
        return namespace

    def _spend(self, who: str) -> None:
        if self._per_minute is None:
            return
        now = time.monotonic()
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.clear()
        bucket = self._buckets.setdefault(who, _Bucket(self._per_minute, now))
        bucket.left = min(self._per_minute, bucket.left + (now - bucket.at) * self._per_minute / 60)
        bucket.at = now
        if bucket.left < 1:
            wait = (1 - bucket.left) * 60 / self._per_minute
            raise Turned(
                429,
                f"{self._per_minute} requests a minute are allowed here: try again in {wait:.0f} seconds",
                {"Retry-After": str(max(1, round(wait)))},
            )
        bucket.left -= 1


class _Request:
    """What is known of one request when it ends."""

    def __init__(self, scope: Scope, request_id: str, began: float, span: telemetry.Incoming) -> None:
        self.id = request_id
        self.scope = scope
        self._began = began
        self._span = span
        self._status = 0

    @property
    def is_answered(self) -> bool:
        """Whether an answer has begun."""
        return self._status != 0

    def answering(self, send: Send) -> Send:
        """A way to answer that adds what every answer has."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                message["headers"] = [*message["headers"], *self._own_headers(message["headers"])]
            await send(message)

        return answer

    def _own_headers(self, given: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        names = {name.lower() for name, _ in given}
        policy = DOCS_POLICY if self.scope["path"].startswith("/docs") else API_POLICY
        for header in (*SECURITY_HEADERS, (POLICY, policy), (b"x-request-id", self.id.encode())):
            if header[0] not in names:
                yield header

    def tell(self) -> None:
        """One line in the log. Ids in a path are the caller's own, so the route is told by its pattern."""
        path = getattr(self.scope.get("route"), "path_format", None) or (
            "/mcp" if self.scope["path"] == "/mcp" else None
        )
        door = "mcp" if path == "/mcp" else "rest"
        seconds = time.perf_counter() - self._began
        self._span.answered(self.scope["method"], self.scope["scheme"], path, door, self._status, seconds)
        if not log.isEnabledFor(logging.INFO):
            return
        log.info(
            "%s %s %s",
            self.scope["method"],
            path or "-",
            self._status or "no answer",
            extra={
                "request_id": self.id,
                # Where the body names the user, the route has found it out.
                "namespace": self.scope.get("state", {}).get("namespace"),
                "door": door,
                "ms": round(seconds * 1000, 1),
            },
        )


def _address(scope: Scope) -> str:
    """How a caller without a key is told from others."""
    return f"from:{(scope.get('client') or ('unknown',))[0]}"


def _request_id(headers: Headers) -> str:
    """The one that a proxy gave, if it is harmless in a log, or a new one."""
    given = headers.get("x-request-id", "")
    return given if _USABLE_ID.fullmatch(given) else str(uuid7())


def _check_length(headers: Headers) -> None:
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_BODY_BYTES:
        raise Turned(413, _TOO_LARGE)


_UNEXPECTED = "Something unexpected happened here: the log of the server has the details, by the request id"

_TOO_LARGE = f"The body is larger than the limit of {MAX_BODY_BYTES // 1024 // 1024} MB: send it in several requests"


def _bounded(receive: Receive) -> Receive:
    """A body of a size that nobody announced is counted as it comes, and must keep coming."""
    received = 0

    async def next_part() -> Message:
        nonlocal received
        if received < 0:
            return await receive()
        try:
            async with asyncio.timeout(MAX_SILENCE_SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time: send it without pauses") from None
        received += len(message.get("body", b""))
        if received > MAX_BODY_BYTES:
            raise HTTPException(413, _TOO_LARGE)
        if not message.get("more_body", False):
            # What comes after the body is the end of the connection, for which a handler may wait as long as it likes.
            received = -1
        return message

    return next_part


def _host_of(address: str) -> str:
    """The host in `host:port`, `[::1]:port` or an origin."""
    host = address.rpartition("://")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _refused(refusal: Turned | RecollectError) -> Any:
    if isinstance(refusal, Turned):
        return problems.problem(refusal.status, str(refusal), refusal.headers)
    return problems.answer(refusal)
