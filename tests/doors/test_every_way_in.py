"""Every path that a server answers is in a matrix of who may do what, and none is open to who has no key.

The matrices: tests/doors/test_rest_isolation.py, tests/contracts/cognitive/test_isolation.py (tools and resources) and
tests/doors/console/test_isolation.py; each fails for a route, tool or page that it does not know.
"""

import httpx
import pytest
from starlette.routing import Mount, Route

from recollect.doors.console import site
from recollect.doors.console.door import Console
from recollect.doors.mcp.authorization import Authorization
from recollect.doors.mcp.server import RecollectServer, http_routes
from recollect.doors.rest.app import create_app
from recollect.doors.rest.routes import gateway
from recollect.engine import Engine
from recollect.settings import Settings
from tests.doors.test_rest_isolation import ROUTES

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)

# They say nothing of anybody's memory.
PUBLIC = {"/", "/health", "/docs", "/docs/assets/{path}", "/openapi.json"}

# How a client signs in that has no key yet: tests/doors/test_oauth.py.
SIGNING_IN = {
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/authorize",
    "/register",
    "/revoke",
    "/token",
}

# The page with the form for a key, what pages load, and what ends a visit.
OPEN_PAGES = {"/console/sign-in", "/console/sign-out", "/console/static/{name}"}


async def test_no_path_is_outside_the_matrices_or_open_without_a_key(settings: Settings) -> None:
    strict = {"public_url": "http://127.0.0.1:8000", "require_key": True}
    engine = await Engine.open(settings.model_copy(update=strict))
    console, authorization = Console(engine), Authorization(engine)
    routes = [*http_routes(RecollectServer(engine)), *authorization.routes, *console.routes]
    app = create_app(engine, routes, pages=console, tokens=authorization)
    paths = {route.path_format for route in app.routes if isinstance(route, Route | Mount)}
    of_console = {path for path in paths if path.startswith("/console")}
    assert paths - of_console == {path for _, path in ROUTES} | PUBLIC | SIGNING_IN | {"/mcp"}
    pages = {(method, route.path) for route in site.ROUTES for method in route.methods or ()}
    guarded = {(method, path) for method, path in ROUTES | {("GET", "/mcp"), ("POST", "/mcp")} if path not in PUBLIC}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
        for method, path in sorted(guarded):
            answer = await http.request(method, path.replace("{", "").replace("}", ""))
            # Users of the gateway have their key in the body.
            expected = 422 if path in gateway.WITH_USER_KEY else 401
            assert answer.status_code == expected, (method, path, answer.status_code)
        for method, path in sorted(pages):
            if path not in OPEN_PAGES:
                answer = await http.request(method, path)
                assert answer.status_code in (303, 401, 403), (method, path, answer.status_code)
    await engine.close()
