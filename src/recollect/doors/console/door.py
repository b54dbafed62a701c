"""The console as `recollect serve` has it: loaded by its first request, admitted by a cookie."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import forks, tasks
from recollect.doors.console import cookies
from recollect.engine import Engine
from recollect.errors import AccessDenied
from recollect.flows.accounts.access import BROWSER_PREFIX
from recollect.memory.accounts.access import Credential

PATH = "/console"
SIGN_IN = f"{PATH}/sign-in"
STATIC = f"{PATH}/static/"
IMPORT = f"{PATH}/jobs/import"

# The consent page, which is served even without the rest of the console.
AUTHORIZE = "/authorize"
MAX_PUBLIC_BYTES = 64 * 1024

# A file to import goes to disk, piece by piece. It is read only from those whom the gate admitted.
MAX_UPLOAD_BYTES = 1024 * 1024 * 1024


class Console:
    """What the gate must know of the console, and an ASGI application with its pages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._app: ASGIApp | None = None
        self._has_consent = engine.settings.public_url is not None
        self._has_console = engine.settings.console

    @property
    def routes(self) -> Sequence[BaseRoute]:
        console = (
            [PATH, PATH + "/{page:path}"]
            if self._has_console
            else [STATIC + "{page:path}"]
            if self._has_consent
            else []
        )
        return [Route(path, self) for path in [*console, *([AUTHORIZE] if self._has_consent else [])]]

    def covers(self, path: str) -> bool:
        """Whether a path belongs to the console."""
        if self._has_consent and (path == AUTHORIZE or path.startswith(STATIC)):
            return True
        return self._has_console and (path == PATH or path.startswith(f"{PATH}/"))

    def is_public(self, path: str) -> bool:
        """Whether a page shows nothing of anybody's memory."""
        return path in (SIGN_IN, AUTHORIZE) or path.startswith(STATIC)

    def looks_up(self, path: str, headers: Headers) -> bool:
        """Whether a public page asks the database: for the client to connect, or whether a sign-in has ended."""
        token = cookies.token_in(headers) if path == SIGN_IN else None
        return path == AUTHORIZE or (token is not None and token.startswith(BROWSER_PREFIX))

    def largest_body(self, path: str) -> int | None:
        """How many bytes a page takes, if not the usual number; few where anybody may send them."""
        return MAX_UPLOAD_BYTES if path == IMPORT else MAX_PUBLIC_BYTES if path in (SIGN_IN, AUTHORIZE) else None

    async def credential(self, headers: Headers) -> Credential | None:
        """Whom the cookie of a request belongs to. One that has ended is refused, even by an open namespace."""
        token = cookies.token_in(headers)
        known = None if token is None else await self._engine.access.browser(token)
        if known is None and token is not None and token.startswith(BROWSER_PREFIX):
            raise AccessDenied(cookies.SIGNED_OUT)
        return known

    def problem(self, scope: Scope, status: int, sentence: str) -> Response:
        """A refusal as a page; whoever is not signed in is asked to."""
        from recollect.doors.console import problems

        return problems.refused(scope, status, sentence)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await tasks.in_thread(_load)
        await self._app(scope, receive, send)


def _load() -> ASGIApp:
    with forks.importing():
        from recollect.doors.console.site import site

        return site()
