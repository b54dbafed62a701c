"""The gate before every HTTP route, REST and MCP alike: authentication, the namespace, and body limits."""

import asyncio
import logging
import re
import time
from collections import Counter
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Self

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect import logs, telemetry
from recollect.doors.loopback import host_is_loopback, origin_is_loopback
from recollect.doors.rest import problems
from recollect.doors.rest.edge import body_limits, credentials
from recollect.doors.rest.edge.fair_share import FairShare
from recollect.doors.rest.edge.pages import Pages
from recollect.doors.rest.edge.tokens import Tokens
from recollect.engine import Engine
from recollect.errors import AccessDenied, RecollectError
from recollect.flows.accounts.access import TtlCache
from recollect.flows.defence.masking import counting_masked, described
from recollect.identifiers import uuid7
from recollect.memory.accounts.access import Credential
from recollect.origin import Limits, Reach, Role, acting
from recollect.quotas import Subject

# Routes that need no key, because they say nothing of anybody's memory.
PUBLIC = frozenset({"/", "/health", "/docs", "/openapi.json"})

ASSETS = "/docs/"

# Of callers whose rate is limited. One more empties the table, which gives everybody a full bucket again.
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

# Says how many secrets of each kind were written over; contracts fix the fields of bodies.
MASKED = b"x-recollect-masked"

# By the first part of a path; every other one is REST.
DOOR_OF = {"mcp": "mcp", "console": "console", "authorize": "console"} | dict.fromkeys(
    (".well-known", "register", "token", "revoke"), "mcp"
)

# The caller, to the others who share the server, of all that clients ask before they have a token.
SIGNING_IN = "clients that sign in"

# The caller, to the others, of all who send user keys from addresses that have not sent a valid one lately. Each on its
# own would leave the others a smaller share, and anybody may come from many addresses.
STRANGERS = "senders of unknown user keys"

# How long an address has a share of its own after it sent a valid user key.
KNOWN_SECONDS = 60.0

_USABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = logging.getLogger("recollect.requests")


@dataclass(slots=True)
class _Bucket:
    """How many requests a key may still make; it fills up evenly."""

    left: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Admitted:
    """What a request may see, the name of its key, and what that may do; without a key, everything."""

    namespace: str | None
    author: str | None = None
    role: Role = "admin"
    limits: Limits | None = None
    reach: Reach | None = None
    caller: str | None = None
    """Whose queue for a fair share the request waits in; None if it is quick and waits in none."""
    key: Credential | None = None
    member: str = ""
    """Who it is among several that share a queue."""

    @classmethod
    def by(cls, key: Credential) -> Self:
        """What a key allows."""
        return cls(key.namespace, key.label or key.key_id, key.role, key.limits, key.reach, _holder(key), key)

    def acting(self, door: str, spender: Subject | None) -> AbstractContextManager[None]:
        """Do all that is done within the block as this caller."""
        key = self.key
        return acting(
            door,
            self.author,
            self.role,
            self.limits,
            self.reach,
            key_id=None if key is None else key.key_id,
            spender=spender,
            key_role=None if key is None else key.key_role,
            connection_id=None if key is None else key.connection_id,
        )


class Gate:
    """An ASGI application around another one.

    Paths `with_user_key` bring credentials of their own in the body; until it is read, the address tells callers apart.
    """

    def __init__(
        self,
        app: ASGIApp,
        engine: Engine,
        on_loopback: bool,
        with_user_key: frozenset[str],
        pages: Pages | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._app = app
        self._with_user_key = with_user_key
        self._pages = pages
        self._tokens = tokens
        self._engine = engine
        # With a public address every client must be told how to sign in, so no namespace is open.
        settings = engine.settings
        self._may_be_open = on_loopback and not settings.require_key and settings.public_url is None
        self._per_minute = engine.settings.rate_limit_per_minute
        self._buckets: dict[str, _Bucket] = {}
        self._known_addresses = TtlCache[str, bool](KNOWN_SECONDS)
        self._unknown_senders = body_limits.UnknownSenders()
        self._fair_share = FairShare()

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
            limit = self._largest_body(scope["path"])
            body_limits.refuse_too_large(headers.get("content-length", ""), limit)
            admitted = await self._admitted(scope, headers)
            namespace = admitted.namespace
            scope.setdefault("state", {}).update(namespace=namespace, request_id=request.id, author=admitted.author)
            body = body_limits.bounded(receive, limit)
            if namespace is None and scope["path"] in self._with_user_key:
                body = await self._unknown_senders.introduced(body, self._engine.access.user_of)
            elif admitted.caller == SIGNING_IN:
                # Before its turn: a sender who takes long must keep nobody waiting.
                body = await self._unknown_senders.whole(body)
            if scope["method"] == "HEAD" and _is_public(scope["path"]):
                # A copy, because the server leaves out the body of an answer by the method in its own.
                request.scope = {**scope, "method": "GET"}
            spender = None if admitted.key is None else await self._engine.quotas.admit(admitted.key)
            async with self._turn(admitted):
                with admitted.acting(request.door, spender), counting_masked() as request.masked:
                    await self._app(request.scope, body, request.answering(send))
            self._note_address(request, admitted)
        except HTTPException as refusal:
            answer = self._refusal(scope, refusal)
            await answer(scope, receive, request.answering(send))
        except RecollectError as refusal:
            await self._refusal(scope, refusal)(scope, receive, request.answering(send))
        except asyncio.CancelledError:
            # The server stops and has waited long enough. Only the server waits for this task.
            await request.cut_off(receive, send)
        except ClientDisconnect:
            log.debug("a client disconnected before its request was complete", extra={"request_id": request.id})
        except Exception:  # the last one who can answer in the contract's shape
            log.exception("a request failed unexpectedly", extra={"request_id": request.id})
            if not request.is_answered:
                answer = self._refusal(scope, HTTPException(500, _UNEXPECTED))
                await answer(scope, receive, request.answering(send))
        finally:
            request.tell()

    def _turn(self, admitted: "_Admitted") -> AbstractAsyncContextManager[None]:
        """The caller's turn; what shows nothing of anybody's memory is quick, and needs none."""
        return nullcontext() if admitted.caller is None else self._fair_share.turn(admitted.caller, admitted.member)

    def _note_address(self, request: "_Request", admitted: "_Admitted") -> None:
        """Give an address that sent a valid user key a share of its own for a while."""
        scope = request.scope
        if admitted.key is None and scope["path"] in self._with_user_key and request.is_successful:
            self._known_addresses.put(_address(scope), True)

    def _largest_body(self, path: str) -> int:
        """How many bytes a request may have; few where anybody may send one."""
        if self._tokens is not None and self._tokens.covers(path):
            return body_limits.SMALL_BYTES
        largest = None if self._pages is None else self._pages.largest_body(path)
        return body_limits.MAX_BODY_BYTES if largest is None else largest

    async def _admitted(self, scope: Scope, headers: Headers) -> "_Admitted":
        """What a request may see. Without a valid key, where one is needed, its address pays for it."""
        try:
            return await self._known(scope, headers)
        except AccessDenied:
            self._spend(_address(scope))
            raise

    async def _known(self, scope: Scope, headers: Headers) -> "_Admitted":
        """The namespace that a request may see, and who sends it; no namespace where a route needs none."""
        if _is_public(scope["path"]):
            return _Admitted(None)
        if self._pages is not None and self._pages.covers(scope["path"]):
            return await self._admitted_to(self._pages, scope, headers)
        if self._tokens is not None and self._tokens.covers(scope["path"]):
            self._spend(_address(scope))
            if scope["method"] != "POST":
                return _Admitted(None)  # metadata, which is always the same
            # Anybody may come from many addresses: together they are one caller.
            return _Admitted(None, caller=SIGNING_IN, member=_address(scope))
        key = credentials.key_in(scope, headers)
        if key is not None and credentials.is_foreign(scope, key) and self._may_be_open:
            key = None
        if key is None and scope["path"] in self._with_user_key:
            address = _address(scope)
            self._spend(address)
            return _Admitted(None, caller=address if self._known_addresses.get(address) else STRANGERS, member=address)
        if key is None:
            namespace = await self._without_key(scope["path"], headers)
            return _Admitted(namespace, reach=Reach(namespace), caller=_open(namespace))
        credential = None if self._tokens is None else await self._tokens.credential(scope["path"], key)
        credential = credential or await self._engine.access.credential(key)
        if credential is None or credential.user_id is not None:
            raise AccessDenied(self._no_access(scope["path"], key))
        self._spend(_holder(credential))
        return _Admitted.by(credential)

    async def _admitted_to(self, pages: Pages, scope: Scope, headers: Headers) -> "_Admitted":
        """What a browser may see: all of the namespace whose key it signed in with, or of an open one."""
        if pages.is_public(scope["path"]):
            if scope["method"] != "GET" or pages.looks_up(scope["path"], headers):
                self._spend(_address(scope))
            return _Admitted(None)
        credential = await pages.credential(headers)
        if credential is None:
            namespace = await self._without_key(scope["path"], headers)
            return _Admitted(namespace, reach=Reach(namespace), caller=_open(namespace))
        self._spend(_holder(credential))
        return _Admitted.by(credential)

    def _refusal(self, scope: Scope, problem: HTTPException | RecollectError) -> Response:
        """The answer to what was refused here, in the form that its path's clients read."""
        path = scope["path"]
        if isinstance(problem, RecollectError):
            answer = problems.answer(problem, path)
        else:
            answer = problems.problem(problem.status_code, problem.detail, dict(problem.headers or {}), path)
        if answer.status_code == 401 and self._tokens is not None:
            sent = any(name == b"authorization" for name, _ in scope["headers"])
            if challenge := self._tokens.challenge(path, is_invalid=sent):
                answer.headers["WWW-Authenticate"] = challenge
        if self._pages is None or not self._pages.covers(path):
            return answer
        sentence = problem.detail if isinstance(problem, HTTPException) else str(problem)
        page = self._pages.problem(scope, answer.status_code, sentence)
        if wait := answer.headers.get("retry-after"):
            page.headers["retry-after"] = wait
        return page

    async def _without_key(self, path: str, headers: Headers) -> str:
        """On loopback a namespace without keys is open; a page of another site must not reach it through a browser."""
        namespace = self._engine.settings.namespace
        if not self._may_be_open or not await self._engine.access.is_open(namespace):
            raise AccessDenied(self._no_access(path, None))
        for host in headers.getlist("host") or [""]:  # HTTP/1.0 needs none
            if not host_is_loopback(host):
                raise _not_loopback(421, "Host", host)
        for origin in headers.getlist("origin"):
            if not origin_is_loopback(origin) and origin not in self._engine.settings.cors_origins:
                raise _not_loopback(403, "Origin", origin)
        self._spend(_open(namespace))
        return namespace

    def _no_access(self, path: str, key: str | None) -> str:
        """What to do about a key that is missing or not valid."""
        told = None if self._tokens is None else self._tokens.refusal(path, key)
        return told or (_MISSING if key is None else _INVALID)

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
        self.masked: Counter[str] = Counter()
        """Secrets that were written over in what the request brought, by kind."""

    @property
    def door(self) -> str:
        """The door it came through: rest, mcp or console."""
        return DOOR_OF.get(self.scope["path"].split("/", 2)[1], "rest")

    @property
    def is_successful(self) -> bool:
        """Whether it was answered, and not refused."""
        return 200 <= self._status < 300

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
                own = [*SECURITY_HEADERS, (POLICY, policy), (b"x-request-id", self.id.encode())]
                if self.masked:
                    own.append((MASKED, described(self.masked).encode("ascii")))
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


def _holder(key: Credential) -> str:
    """How a key is told from others, whose ids may be the same in other namespaces."""
    return f"key:{key.namespace}:{key.key_id}"


def _open(namespace: str) -> str:
    """All who use a namespace without keys are one caller."""
    return f"open:{namespace}"


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(ASSETS)


def _not_loopback(status: int, name: str, value: str) -> HTTPException:
    return HTTPException(status, f"Without a key, {name} must be a loopback address, not {value[:100]!r}")


_MISSING = "A key is required: send the header Authorization: Bearer KEY (create one with `recollect keys create`)"
_INVALID = "The key is not valid: it is unknown, revoked, expired, or not a key of a namespace"
_STOPPING = "The server is shutting down: try again in a moment"
_UNEXPECTED = "An unexpected error occurred: the server log has the details under the request id"
