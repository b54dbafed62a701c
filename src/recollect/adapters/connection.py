"""A connection to Recollect for adapters: a running server, or the embedded engine in this process."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from recollect import checks
from recollect.background import Background
from recollect.errors import (
    AccessDenied,
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    Misconfigured,
    NotFound,
    RecollectError,
    Unavailable,
)
from recollect.settings import Settings

# A search while the server loads its model, or a flush behind a long queue.
TIMEOUT_SECONDS = 60.0

MAX_PORT = 65535
# What a header can carry; a line break from a file would otherwise look like a server that does not answer.
KEY = re.compile("[!-~]+")
# How a server says that it has no such route: not to be mistaken for a memory that is not there.
NO_ROUTE = {404: "Not Found", 405: "Method Not Allowed"}

_CATEGORY_OF: Mapping[int, type[RecollectError]] = {
    400: Invalid,
    401: AccessDenied,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: LimitReached,
    422: Invalid,
    429: LimitReached,
    500: Misconfigured,
}


class Connection:
    """Calls the REST door of the server at `url`, or without a URL of an engine that this process opens.

    The calls of every thread and event loop go through one background loop, so an adapter may be made anywhere and used
    from everywhere. The connection opens on its first call, and closes by itself when the process ends.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        if url is None and key is not None:
            raise Invalid("A key belongs to a server: give its url as well, for example http://127.0.0.1:8000")
        if url is not None and (namespace is not None or settings is not None):
            raise Invalid("The key decides the namespace on a server: leave out namespace and settings, or the url")
        if url is not None:
            _require_address(url)
        if key is not None and not KEY.fullmatch(key):
            raise Invalid(
                "key must be one of `recollect keys create`, with nothing around it: leave it out if there is none"
            )
        self._url = url
        self._key = key
        self._namespace = None if namespace is None else checks.namespace(namespace)
        self._settings = settings
        self._background = Background(self._server if url is not None else self._embedded)

    def call(
        self,
        method: str,
        path: str,
        *ids: str,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        header: str | None = None,
    ) -> Any:
        """The decoded answer of a route; each `{}` in its path is one of the ids, of any letters.

        With `header`, a pair: the answer, and that header of it, or None.
        """
        return self._background.call(lambda http: _call(http, method, path, ids, json, params, header))

    async def call_async(
        self,
        method: str,
        path: str,
        *ids: str,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        header: str | None = None,
    ) -> Any:
        """The same, without blocking the caller's event loop."""
        return await self._background.call_async(lambda http: _call(http, method, path, ids, json, params, header))

    def close(self) -> None:
        """Finish the calls under way and let go of the server or the database. The next call opens it again."""
        self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[httpx.AsyncClient]:
        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        async with httpx.AsyncClient(base_url=self._url or "", headers=headers, timeout=TIMEOUT_SECONDS) as http:
            yield http

    @asynccontextmanager
    async def _embedded(self) -> AsyncIterator[httpx.AsyncClient]:
        # A program that only talks to a server need not load the engine.
        from recollect.doors.rest.in_process import transport

        async with (
            transport(self._settings, self._namespace) as in_process,
            httpx.AsyncClient(base_url="http://localhost", transport=in_process) as http,
        ):
            yield http


def _require_address(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) > MAX_PORT:
        raise Invalid(f"url must be the address of a server, such as http://127.0.0.1:8000, not {url!r}")


def _segment(name: str) -> str:
    """One part of a path: never an empty one, nor the dots that clients resolve as folders."""
    if not name:
        raise Invalid("An id is empty: it needs at least one character")
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


async def _call(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    ids: tuple[str, ...],
    json: Any,
    params: Mapping[str, Any] | None,
    header: str | None,
) -> Any:
    given = {name: value for name, value in (params or {}).items() if value is not None}
    try:
        answer = await http.request(method, path.format(*map(_segment, ids)), json=json, params=given)
    except httpx.HTTPError as problem:
        raise Unavailable(
            f"No answer from {http.base_url} ({type(problem).__name__}): is `recollect serve` running there?"
        ) from problem
    if answer.is_success:
        decoded = answer.json() if answer.content else None
        return decoded if header is None else (decoded, answer.headers.get(header))
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = f"The server answered {answer.status_code} without saying why: is it a Recollect server?"
    if detail == NO_ROUTE.get(answer.status_code):
        raise Unavailable(
            f"The server at {http.base_url} has no {method} {path}: is the url right, and the server new enough?"
        )
    if not isinstance(detail, str):
        faults = [(".".join(map(str, fault.get("loc", ()))), fault["msg"]) for fault in detail]
        detail = "; ".join(f"{place}: {what}" if place else what for place, what in faults)
    raise _CATEGORY_OF.get(answer.status_code, Unavailable)(detail)
