"""The gate before every HTTP route, REST and MCP alike: authentication, the namespace, and body limits."""

import asyncio
import logging
import re
import time
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect import logs, telemetry
from recollect.doors.loopback import host_is_loopback, origin_is_loopback
from recollect.doors.rest import problems
from recollect.doors.rest.edge import body_limits, credentials
from recollect.engine import Engine
from recollect.errors import AccessDenied, RecollectError
from recollect.identifiers import uuid7
from recollect.origin import acting

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


@dataclass(slots=True)
class _Bucket:
    """How many requests a key may still make; it fills up evenly."""

    left: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Admitted:
    """What a request may see, and the name of its key."""

    namespace: str | None
    author: str | None = None


class Gate:
    """An ASGI application around another one.

    Paths `with_user_key` bring credentials of their own in the body; until it is read, the address tells callers apart.
    """

    def __init__(self, app: ASGIApp, engine: Engine, on_loopback: bool, with_user_key: frozenset[str]) -> None:
        self._app = app
        self._with_user_key = with_user_key
        self._engine = engine
        self._may_be_open = on_loopback and not engine.settings.require_key
        self._per_minute = engine.settings.rate_limit_per_minute
        self._buckets: dict[str, _Bucket] = {}
        self._unknown_senders = body_limits.UnknownSenders()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # The one that a proxy gave, if it is harmless in a log.
        given = headers.get("x-request-id", "")
        request_id = given if _USABLE_ID.fullmatch(given) else str(uuid7())
        with logs.handling(request_id), telemetry.incoming(headers) as span:
            await self._serve(_Request(scope, request_id, time.perf_counter(), span), headers, receive, send)

    async def _serve(self, request: "_Request", headers: Headers, receive: Receive, send: Send) -> None:
        scope = request.scope
        try:
            if body_limits.is_too_large(headers.get("content-length", "")):
                raise HTTPException(413, body_limits.TOO_LARGE)
            admitted = await self._admitted(scope, headers)
            namespace = admitted.namespace
            scope.setdefault("state", {}).update(namespace=namespace, request_id=request.id)
            body = body_limits.bounded(receive)
            if namespace is None and scope["path"] in self._with_user_key:
                body = await self._unknown_senders.introduced(body, self._engine.access.user_of)
            if scope["method"] == "HEAD" and _is_public(scope["path"]):
                # A copy, because the server leaves out the body of an answer by the method in its own.
                request.scope = {**scope, "method": "GET"}
            with acting(request.door, admitted.author):
                await self._app(request.scope, body, request.answering(send))
        except HTTPException as refusal:
            headers_of_refusal = dict(refusal.headers or {})
            answer = problems.problem(refusal.status_code, refusal.detail, headers_of_refusal, scope["path"])
            await answer(scope, receive, request.answering(send))
        except RecollectError as refusal:
            await problems.answer(refusal, scope["path"])(scope, receive, request.answering(send))
        except asyncio.CancelledError:
            # The server stops and has waited long enough. Only the server waits for this task.
            await request.cut_off(receive, send)
        except ClientDisconnect:
            log.debug("a client disconnected before its request was complete", extra={"request_id": request.id})
        except Exception:  # the last one who can answer in the contract's shape
            log.exception("a request failed unexpectedly", extra={"request_id": request.id})
            if not request.is_answered:
                await problems.problem(500, _UNEXPECTED, path=scope["path"])(scope, receive, request.answering(send))
        finally:
            request.tell()

    async def _admitted(self, scope: Scope, headers: Headers) -> "_Admitted":
        """The namespace that a request may see, and who sends it; no namespace where a route needs none."""
        if _is_public(scope["path"]):
            return _Admitted(None)
        try:
            key = credentials.key_in(scope, headers)
        except AccessDenied:
            self._spend(_address(scope))
            raise
        if key is not None and credentials.is_foreign(scope, key) and self._may_be_open:
            key = None
        if key is None and scope["path"] in self._with_user_key:
            self._spend(_address(scope))
            return _Admitted(None)
        if key is None:
            return _Admitted(await self._without_key(headers))
        credential = await self._engine.access.credential(key)
        if credential is None or credential.user_id is not None:
            self._spend(_address(scope))
            raise AccessDenied("The key is not valid: it is unknown, revoked, or not a key of a namespace")
        self._spend(credential.key_id)
        return _Admitted(credential.namespace, credential.label or credential.key_id)

    async def _without_key(self, headers: Headers) -> str:
        """On loopback a namespace without keys is open; a page of another site must not reach it through a browser."""
        namespace = self._engine.settings.namespace
        if not self._may_be_open or not await self._engine.access.is_open(namespace):
            raise AccessDenied(
                "A key is required: send the header Authorization: Bearer KEY (create one with `recollect keys create`)"
            )
        for host in headers.getlist("host") or [""]:  # HTTP/1.0 needs none
            if not host_is_loopback(host):
                raise _not_loopback(421, "Host", host)
        for origin in headers.getlist("origin"):
            if not origin_is_loopback(origin) and origin not in self._engine.settings.cors_origins:
                raise _not_loopback(403, "Origin", origin)
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
            raise HTTPException(
                429,
                f"{self._per_minute} requests per minute are allowed: try again in {wait:.0f} seconds",
                {"Retry-After": str(max(1, round(wait)))},
            )
        bucket.left -= 1


class _Request:
    """What is known of one request when it ends."""

    def __init__(self, scope: Scope, request_id: str, began: float, span: telemetry.Incoming) -> None:
        self.id = request_id
        self.scope = scope
        self._method = scope["method"]
        self._began = began
        self._span = span
        self._status = 0
        self._has_length = False

    @property
    def door(self) -> str:
        """Which of the two it came by."""
        return "mcp" if self.scope["path"] == "/mcp" else "rest"

    @property
    def is_answered(self) -> bool:
        """Whether an answer has begun."""
        return self._status != 0

    def answering(self, send: Send) -> Send:
        """A way to answer that adds what every answer has."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message["headers"]
                self._status = message["status"]
                self._has_length = any(name == b"content-length" for name, _ in given)
                policy = DOCS_POLICY if self.scope["path"].startswith("/docs") else API_POLICY
                own = (*SECURITY_HEADERS, (POLICY, policy), (b"x-request-id", self.id.encode()))
                names = {name.lower() for name, _ in given}
                message["headers"] = [*given, *(header for header in own if header[0] not in names)]
            await send(message)

        return answer

    async def cut_off(self, receive: Receive, send: Send) -> None:
        """Say that the server stops, or end a stream that would go on."""
        if not self.is_answered:
            await problems.problem(503, _STOPPING, path=self.scope["path"])(self.scope, receive, self.answering(send))
        elif not self._has_length:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def tell(self) -> None:
        """One line in the log. Ids in a path are the caller's own, so the route is logged by its pattern."""
        door = self.door
        path = getattr(self.scope.get("route"), "path_format", None) or ("/mcp" if door == "mcp" else None)
        seconds = time.perf_counter() - self._began
        self._span.answered(self._method, self.scope["scheme"], path, door, self._status, seconds)
        if not log.isEnabledFor(logging.INFO):
            return
        log.info(
            "%s %s %s",
            telemetry.known_method(self._method),
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
    """How callers without a key are told apart."""
    return f"from:{(scope.get('client') or ('unknown',))[0]}"


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(ASSETS)


def _not_loopback(status: int, name: str, value: str) -> HTTPException:
    return HTTPException(status, f"Without a key, {name} must be a loopback address, not {value[:100]!r}")


_STOPPING = "The server is shutting down: try again in a moment"
_UNEXPECTED = "An unexpected error occurred: the server log has the details under the request id"
