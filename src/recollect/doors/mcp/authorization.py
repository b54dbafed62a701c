"""OAuth endpoints for MCP clients: metadata, registration, tokens and revocation. The console has the consent page.

The SDK's own endpoints are not used: they compare client secrets as plain text, ignore `resource` when a code is
exchanged, allow no free port on loopback, and take half a second to import.
"""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from recollect.doors.mcp.route import PATH
from recollect.engine import Engine
from recollect.errors import LimitReached
from recollect.flows.accounts.clients import AUTHENTICATION_METHODS, Refusal
from recollect.flows.accounts.connections import ACCESS_PREFIX, ACCESS_SECONDS, SCOPES
from recollect.memory.accounts.access import Credential

SERVER_METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
AUTHORIZE, TOKEN, REGISTER, REVOKE = "/authorize", "/token", "/register", "/revoke"

GRANTS = ("authorization_code", "refresh_token")

MAX_FIELDS = 50

Endpoint = Callable[[Request], Awaitable[Response]]


class Authorization:
    """The endpoints, and what the gate asks about tokens. Without a public address there are none."""

    def __init__(self, engine: Engine) -> None:
        self._connections = engine.connections
        issuer = engine.connections.issuer
        self._resource_metadata = {
            "resource": engine.connections.resource,
            "authorization_servers": [issuer],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "Recollect",
        }
        self._server_metadata = {
            "issuer": issuer,
            "authorization_endpoint": issuer + AUTHORIZE,
            "token_endpoint": issuer + TOKEN,
            "registration_endpoint": issuer + REGISTER,
            "revocation_endpoint": issuer + REVOKE,
            "scopes_supported": list(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": GRANTS,
            "token_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
            "revocation_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        endpoints: dict[str, tuple[str, Endpoint]] = {
            SERVER_METADATA: ("GET", self.server_metadata),
            RESOURCE_METADATA: ("GET", self.resource_metadata),
            RESOURCE_METADATA + PATH: ("GET", self.resource_metadata),
            REGISTER: ("POST", self.register),
            TOKEN: ("POST", self.token),
            REVOKE: ("POST", self.revoke),
        }
        self._endpoints = endpoints if issuer else {}

    @property
    def routes(self) -> Sequence[BaseRoute]:
        return [endpoint(path, method, answer) for path, (method, answer) in self._endpoints.items()]

    def covers(self, path: str) -> bool:
        """Whether a path is an endpoint, which clients call before they have a token."""
        return path in self._endpoints

    def challenge(self, path: str, *, is_invalid: bool) -> str | None:
        """The header that tells a client where to get a token; None if the path takes no tokens."""
        if not self._endpoints or path != PATH:
            return None
        fault = 'error="invalid_token", ' if is_invalid else ""
        metadata = f"{self._connections.issuer}{RESOURCE_METADATA}{PATH}"
        return f'Bearer {fault}resource_metadata="{metadata}", scope="{SCOPES["write"]}"'

    def refusal(self, path: str, token: str | None) -> str | None:
        """What to do about a token or key that is missing or not valid; None if tokens play no part."""
        is_token = token is not None and token.startswith(ACCESS_PREFIX)
        if not self._endpoints or (path != PATH and not is_token):
            return None
        if path != PATH:
            return f"Access tokens of signed-in clients work only at {PATH}: send a key here"
        if token is None:
            return "Sign in with OAuth, or send a key in the header Authorization: Bearer KEY"
        if is_token:
            return "The access token is not valid: it is unknown, expired or revoked. Sign in again."
        return (
            "The key is not valid: it is unknown, revoked, expired, or not a key of a namespace. "
            "Send another key, or sign in with OAuth."
        )

    async def credential(self, path: str, token: str) -> Credential | None:
        """The key that an access token stands for; only at the resource that it was issued for."""
        is_one = token.startswith(ACCESS_PREFIX) and path == PATH and bool(self._endpoints)
        return await self._connections.credential(token) if is_one else None

    async def server_metadata(self, request: Request) -> Response:
        """RFC 8414."""
        return JSONResponse(self._server_metadata)

    async def resource_metadata(self, request: Request) -> Response:
        """RFC 9728."""
        return JSONResponse(self._resource_metadata)

    async def register(self, request: Request) -> Response:
        """RFC 7591."""
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise Refusal("invalid_client_metadata", "The body must be a JSON object")
        new = await self._connections.clients.register(given, request.client.host if request.client else "")
        client = new.client
        answer = {
            "client_id": client.id,
            "client_id_issued_at": int(client.created_at.timestamp()),
            "redirect_uris": client.redirect_uris,
            "token_endpoint_auth_method": new.method,
            "grant_types": GRANTS,
            "response_types": ["code"],
            "scope": SCOPES["write"],
        }
        if client.name is not None:
            answer["client_name"] = client.name
        if new.secret is not None:
            answer |= {"client_secret": new.secret, "client_secret_expires_at": 0}
        return JSONResponse(answer, 201)

    async def token(self, request: Request) -> Response:
        """Exchange a code or a refresh token."""
        given = await fields(request)
        client = await self._connections.clients.authenticated(*client_in(request, given))
        kind = given.get("grant_type")
        if kind not in GRANTS:
            raise Refusal("unsupported_grant_type", f"grant_type must be one of {', '.join(GRANTS)}")
        exchange = self._connections.exchange if kind == "authorization_code" else self._connections.refresh
        tokens = await exchange(client, given)
        return JSONResponse(
            {
                "access_token": tokens.access,
                "token_type": "Bearer",
                "expires_in": ACCESS_SECONDS,
                "refresh_token": tokens.refresh,
                "scope": SCOPES[tokens.role],
            }
        )

    async def revoke(self, request: Request) -> Response:
        """RFC 7009. An unknown token is not an error."""
        given = await fields(request)
        await self._connections.revoke(await self._connections.clients.authenticated(*client_in(request, given)), given)
        return Response()


def endpoint(path: str, method: str, answer: Endpoint) -> Route:
    """A route that answers refusals in the form that OAuth defines."""

    async def answer_or_refuse(request: Request) -> Response:
        request.scope["route"] = route  # for the log
        try:
            return await answer(request)
        except Refusal as refusal:
            is_unknown = refusal.code == "invalid_client"
            challenge = {"WWW-Authenticate": "Basic"} if is_unknown and "authorization" in request.headers else None
            return problem(401 if is_unknown else 400, refusal.code, str(refusal), challenge)
        except LimitReached as refusal:
            return problem(429, "temporarily_unavailable", str(refusal), {"Retry-After": "60"})

    route = Route(path, answer_or_refuse, methods=[method])
    return route


def problem(status: int, code: str, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal: RFC 6749, section 5.2."""
    return JSONResponse({"error": code, "error_description": sentence}, status, headers)


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form, without repeats and without empty ones, which count as left out (RFC 6749, section 3.2)."""
    async with request.form(max_files=0, max_fields=MAX_FIELDS) as form:
        given = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        if len(given) < len(form.multi_items()):
            raise Refusal("invalid_request", "Send each parameter once")
    return {name: value for name, value in given.items() if value}


def client_in(request: Request, given: Mapping[str, str]) -> tuple[str, str | None]:
    """The id and secret of a client, from the form or the header."""
    header = request.headers.get("authorization")
    if header is None:
        return given.get("client_id", ""), given.get("client_secret") or None
    scheme, _, encoded = header.partition(" ")
    try:
        name, separator, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        separator = ""
    if scheme.lower() != "basic" or not separator or "client_secret" in given:
        raise Refusal("invalid_client", "Send client_id and client_secret once, in the form or as Authorization: Basic")
    if given.get("client_id", unquote_plus(name)) != unquote_plus(name):
        raise Refusal("invalid_client", "client_id must be the same in the form and in the header Authorization")
    return unquote_plus(name), unquote_plus(secret) or None
