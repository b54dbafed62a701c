"""Connections: people let remote MCP clients use a memory with their key, by OAuth 2.1.

A client sends a request (`checked`), a person allows (`allow`) or denies it (`deny`), and the client exchanges its code
for tokens. A token stands for the person's key: it can do no more than the key, and works only as long as the key does.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from recollect import origin
from recollect.errors import Forbidden, Invalid, NotFound
from recollect.flows.accounts.access import Access, TtlCache, digest
from recollect.flows.accounts.audit import Audit
from recollect.flows.accounts.clients import Clients, Refusal, is_registered
from recollect.memory.accounts.access import Credential
from recollect.memory.accounts.clients import Client
from recollect.memory.accounts.connections import Connection, NewConnection, StoredConnections, Token, TokenKind
from recollect.origin import ROLES, Role
from recollect.storage.database import Database, Transaction

# The part of the server that tokens are for.
PATH = "/mcp"

CODE_SECONDS = 60
ACCESS_SECONDS = 3600
# Each use of a refresh token issues a new one, so only a client that stays away this long is disconnected.
REFRESH_SECONDS = 30 * 86_400

NOTED_SECONDS = 60

# What a client may ask for, by role. There is no scope for `admin`: clients neither erase anything nor manage keys.
SCOPES: dict[Role, str] = {"read": "read", "write": "read write"}

ACCESS_PREFIX = "oat_"
_PREFIXES: dict[TokenKind, str] = {"code": "oac_", "access": ACCESS_PREFIX, "refresh": "ort_"}

# RFC 7636: a challenge is the SHA-256 of a verifier, in base64url.
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

_NO_GRANT = "The code or refresh token is not valid: it is unknown, used, expired, revoked, or another client's"


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks a person to allow, already validated."""

    client: Client
    redirect_uri: str
    state: str | None
    role: Role
    code_challenge: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a client; shown only once."""

    access: str
    refresh: str
    role: Role

    def __repr__(self) -> str:
        return f"Tokens(role={self.role!r})"


class Connections:
    """Connects, refreshes and disconnects clients. `issuer` is the public address; without one, OAuth is off."""

    def __init__(
        self,
        database: Database,
        access: Access,
        clients: Clients,
        connections: StoredConnections,
        audit: Audit,
        issuer: str | None,
    ) -> None:
        self.clients = clients
        self.issuer = issuer or ""
        self.resource = f"{self.issuer}{PATH}"
        self._database = database
        self._access = access
        self._connections = connections
        self._audit = audit
        self._known = TtlCache[bytes, Token]()
        self._working = TtlCache[tuple[str, str], bool]()

    async def checked(self, given: Mapping[str, str]) -> AuthorizationRequest:
        """Validate a client's request.

        The person sees errors. Anybody can register a client, so a redirect before the person decides would let
        anybody use this server's name for a link to another site (RFC 9700, section 4.11.2).
        """
        client = await self.clients.find(given.get("client_id", ""))
        if client is None:
            raise Invalid("The program that sent you here is not registered: connect it again from its own settings")
        redirect_uri = given.get("redirect_uri") or (client.redirect_uris[0] if len(client.redirect_uris) == 1 else "")
        if not is_registered(client, redirect_uri):
            raise Invalid("This program did not register the address it wants to send you to. Do not continue.")
        asked = AuthorizationRequest(client, redirect_uri, given.get("state"), "read", given.get("code_challenge", ""))
        words = given.get("scope", "").split()
        if given.get("response_type") != "code":
            raise Refusal("unsupported_response_type", "response_type must be code", redirect_uri)
        if given.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(asked.code_challenge):
            raise Refusal("invalid_request", "PKCE is required: send code_challenge with the method S256", redirect_uri)
        if not self.is_for_this_server(given):
            raise Refusal("invalid_target", f"resource must be {self.resource}", redirect_uri)
        if not set(words) <= set(SCOPES):
            raise Refusal("invalid_scope", f"scope must be within {' '.join(SCOPES)}", redirect_uri)
        return asked if words and "write" not in words else replace(asked, role="write")

    def is_for_this_server(self, given: Mapping[str, str]) -> bool:
        """Whether a request names this server as its resource, or, like older clients, none."""
        return "resource" not in given or given["resource"].rstrip("/") == self.resource

    def redirect_address(self, asked: AuthorizationRequest, **answer: str) -> str:
        """Where to send the browser with an answer."""
        state = {} if asked.state is None else {"state": asked.state}
        query = urlencode(answer | state | {"iss": self.issuer})
        return f"{asked.redirect_uri}{'&' if '?' in asked.redirect_uri else '?'}{query}"

    async def key_of_secret(self, secret: str) -> Credential | None:
        """The key that a person enters; None if it is not valid, or the key of a gateway user."""
        key = await self._access.credential(secret)
        return None if key is None or key.user_id is not None else key

    async def key_of_person(self, namespace: str, person: str) -> Credential:
        """The key of a person whom the proxy has signed in."""
        return await self._access.key_of_person(namespace, person)

    async def allow(self, asked: AuthorizationRequest, key: Credential, role: Role) -> str:
        """Connect a client with a role; returns where to send the browser."""
        if role not in SCOPES or ROLES.index(role) > ROLES.index(asked.role):
            raise Forbidden(f"The program asked only for {SCOPES[asked.role]}: choose no more than that")
        if ROLES.index(role) > ROLES.index(key.role):
            raise Forbidden("This key may only read: let the program only read, or use a key with role write")
        new = NewConnection(
            secrets.token_hex(8),
            key.key_id,
            asked.client.id,
            asked.client.name,
            asked.redirect_uri,
            self.resource,
            asked.code_challenge,
            role,
        )
        with origin.own_work():
            async with self._database.transaction(key.namespace) as tx:
                await self._connections.remove_expired(tx)
                await self._connections.add(tx, new)
                code = await self._issue_token(tx, new.id, "code", role, CODE_SECONDS)
        origin.touch(key.namespace, "add", "connection", [new.id])
        return self.redirect_address(asked, code=code)

    def deny(self, asked: AuthorizationRequest) -> str:
        """Where to send the browser if the person says no."""
        told = "The person denied the request"
        return self.redirect_address(asked, error="access_denied", error_description=told)

    async def exchange(self, client: Client, given: Mapping[str, str]) -> Tokens:
        """Exchange a code for tokens. Using a code twice ends the connection."""
        code = given.get("code", "")
        found = await self._redeemable(client, "code", code, given)
        if given.get("redirect_uri", found.redirect_uri) != found.redirect_uri:
            raise Refusal("invalid_grant", "redirect_uri is not the one that the code was sent to")
        verifier = given.get("code_verifier", "")
        hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        if not _VERIFIER.fullmatch(verifier) or hashed != found.code_challenge:
            raise Refusal(
                "invalid_grant", "code_verifier does not match the code_challenge that the code was asked with"
            )
        return await self._issue_tokens(client, found, code, found.role)

    async def refresh(self, client: Client, given: Mapping[str, str]) -> Tokens:
        """Exchange a refresh token for new tokens. Using one twice ends the connection: it may have been stolen."""
        token = given.get("refresh_token", "")
        found = await self._redeemable(client, "refresh", token, given)
        words = given.get("scope", SCOPES[found.role]).split()
        if not set(words) <= set(SCOPES[found.role].split()):
            raise Refusal(
                "invalid_scope", f"scope must be within {SCOPES[found.role]}, which is what the person allowed"
            )
        return await self._issue_tokens(client, found, token, "write" if "write" in words else "read")

    async def revoke(self, client: Client, given: Mapping[str, str]) -> None:
        """End the connection of a token, if the token is one of the client's."""
        found = await self._connections.find(self._database, digest(given.get("token", "")))
        if found is not None and found.client_id == client.id:
            await self._end(found, "POST /revoke")

    async def credential(self, token: str) -> Credential | None:
        """The key that an access token stands for, with at most the role that was allowed; None if it is not valid."""
        hashed = digest(token)
        found = self._known.get(hashed)
        if found is None:
            with origin.own_work():
                found = await self._connections.find(self._database, hashed)
            if found is None or found.kind != "access" or found.expired or found.resource != self.resource:
                return None
            self._known.put(hashed, found)
            if found.last_used_at is None or found.last_used_at < datetime.now(UTC) - timedelta(seconds=NOTED_SECONDS):
                async with self._database.transaction(found.namespace) as tx:
                    await self._connections.note_use(tx, found.connection_id)
        key = await self._access.by_digest(found.key_digest)
        if key is None:
            return None
        role = min(key.role, found.role, key=ROLES.index)
        return replace(key, role=role, key_role=key.role, connection_id=found.connection_id)

    async def is_still_admitted(self, namespace: str, key_id: str | None, connection_id: str | None) -> bool:
        """Whether somebody who came in with a key, a connection or into an open namespace would be let in again."""
        if not await self._access.is_still_admitted(namespace, key_id):
            return False
        if connection_id is None:
            return True
        known = self._working.get((namespace, connection_id))
        if known is None:
            with origin.own_work():
                async with self._database.reading(namespace) as db:
                    known = await self._connections.works(db, connection_id)
            self._working.put((namespace, connection_id), known)
        return known

    async def of_namespace(self, namespace: str, limit: int) -> list[Connection]:
        """Connected clients, newest first."""
        async with self._database.reading(namespace) as db:
            return await self._connections.of_namespace(db, limit)

    async def end(self, namespace: str, connection_id: str) -> None:
        """Disconnect a client."""
        async with self._database.transaction(namespace) as tx:
            ended = await self._connections.end(tx, connection_id)
        self._clear_cache()
        if not ended:
            raise NotFound(
                f"Namespace {namespace} has no connection {connection_id}: see `recollect keys list --namespace "
                f"{namespace}`"
            )

    async def _redeemable(self, client: Client, kind: TokenKind, secret: str, given: Mapping[str, str]) -> Token:
        """A code or refresh token of the client that can be exchanged now."""
        found = await self._connections.find(self._database, digest(secret))
        if found is None or found.kind != kind or found.client_id != client.id:
            raise Refusal("invalid_grant", _NO_GRANT)
        if found.used:
            await self._end(found, "POST /token")
        if found.used or found.expired or found.resource != self.resource:
            raise Refusal("invalid_grant", _NO_GRANT)
        if not self.is_for_this_server(given):
            raise Refusal("invalid_target", f"resource must be {self.resource}")
        return found

    async def _issue_tokens(self, client: Client, found: Token, secret: str, role: Role) -> Tokens:
        with origin.own_work():
            async with self._database.transaction(found.namespace) as tx:
                first = await self._connections.use_up(tx, digest(secret))
                if first:
                    access = await self._issue_token(tx, found.connection_id, "access", role, ACCESS_SECONDS)
                    refresh = await self._issue_token(tx, found.connection_id, "refresh", found.role, REFRESH_SECONDS)
                    await self._connections.remove_expired(tx)
        if not first:
            await self._end(found, "POST /token")
            raise Refusal("invalid_grant", _NO_GRANT)
        await self.clients.note_use(client)
        return Tokens(access, refresh, role)

    async def _issue_token(
        self, tx: Transaction, connection_id: str, kind: TokenKind, role: Role, seconds: float
    ) -> str:
        token = _PREFIXES[kind] + secrets.token_urlsafe(32)
        await self._connections.add_token(tx, connection_id, digest(token), kind, role, seconds)
        return token

    async def _end(self, found: Token, action: str) -> None:
        """End a connection, recorded as done with its key."""
        with origin.acting(origin.current().door, found.key_label or found.key_id, key_id=found.key_id):
            async with self._audit.operation(found.namespace, action):
                with origin.own_work():
                    async with self._database.transaction(found.namespace) as tx:
                        await self._connections.end(tx, found.connection_id)
                self._clear_cache()
                origin.touch(found.namespace, "delete", "connection", [found.connection_id])

    def _clear_cache(self) -> None:
        self._known.clear()
        self._working.clear()
