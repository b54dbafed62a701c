"""Clients: registers programs so that people can connect them. What a client says about itself is only a claim."""

import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import SplitResult, urlsplit

from recollect import checks, origin
from recollect.errors import Invalid, LimitReached
from recollect.flows.accounts.access import digest
from recollect.memory.accounts.clients import Client, OAuthClients
from recollect.storage.database import Database

AUTHENTICATION_METHODS = ("none", "client_secret_post", "client_secret_basic")

MAX_REDIRECT_URIS = 10
MAX_URI_CHARACTERS = 1000

# Anybody may register, so clients that were never connected are limited in number and age. The others go after a
# time without new tokens, which is longer than any token works.
MAX_UNUSED = 5_000
KEPT_SECONDS = 3600.0
"""Somebody may be connecting a client that is younger."""

UNUSED_DAYS = 30
IDLE_DAYS = 180

# For each source, in each process.
REGISTRATIONS_PER_MINUTE = 20
MAX_SOURCES = 10_000

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

# RFC 3986, without characters that have a meaning in HTML or in a header.
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")

# A host name or address, with or without a port.
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")

# Schemes that browsers and operating systems act on themselves. Any other belongs to an application on the person's
# device. Many of these (cursor, vscode, windsurf, claude) do without the dot that RFC 8252 asks for.
_SYSTEM_SCHEME = re.compile(
    r"about|android-app|applescript|blob|brave|callto|chrome|data|devtools|edge|facetime|feed|file|filesystem|"
    r"ftp|ftps|geo|git|hcp|help|intent|irc|its|jar|javascript|ldap|ldaps|livescript|magnet|mailto|maps|market|"
    r"mhtml|mk|mms|news|nfs|nntp|opera|rdp|res|resource|search|sftp|shell|shortcuts|sip|sips|sms|smb|ssh|svn|"
    r"tel|telnet|urn|vbscript|view-source|vivaldi|vnc|webcal|ws|wss|xmpp|"
    r"(?:chrome-|itms|microsoft-|moz-|ms-|search-|x-apple).*"
)


class Refusal(Invalid):
    """A refusal with the error code that OAuth defines for it, and the client's address if a person must be told."""

    def __init__(self, code: str, sentence: str, redirect_uri: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.redirect_uri = redirect_uri


@dataclass(frozen=True, slots=True)
class NewClient:
    """A client at the one moment when its secret is known."""

    client: Client
    method: str
    secret: str | None

    def __repr__(self) -> str:
        return f"NewClient(id={self.client.id!r})"


class Clients:
    """Registers and authenticates clients."""

    def __init__(self, database: Database, clients: OAuthClients) -> None:
        self._database = database
        self._clients = clients
        self._registered: dict[str, list[float]] = {}

    async def register(self, given: Mapping[str, object], address: str) -> NewClient:
        """Register a client with the metadata it sends; unknown fields are ignored."""
        self._count(address)
        uris = given.get("redirect_uris")
        if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_REDIRECT_URIS:
            raise Refusal("invalid_redirect_uri", f"redirect_uris must be a list of 1 to {MAX_REDIRECT_URIS} addresses")
        for number, uri in enumerate(uris):
            if (problem := _fault(uri)) is not None:
                raise Refusal("invalid_redirect_uri", f"redirect_uris[{number}] {problem}")
        method = given.get("token_endpoint_auth_method") or "client_secret_basic"
        if method not in AUTHENTICATION_METHODS:
            known = ", ".join(AUTHENTICATION_METHODS)
            raise Refusal("invalid_client_metadata", f"token_endpoint_auth_method must be one of {known}")
        for field, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
            values = given.get(field) or [needed]
            if not isinstance(values, list) or needed not in values:
                raise Refusal("invalid_client_metadata", f"{field} must include {needed}")
        name = cast("str | None", given.get("client_name") or None)
        try:
            checks.optional_short_name(name, "client_name")  # also refuses what is not text
        except Invalid as refused:
            raise Refusal("invalid_client_metadata", str(refused)) from refused
        secret = None if method == "none" else f"ocs_{secrets.token_urlsafe(32)}"
        client_id = f"oc_{secrets.token_hex(16)}"
        hashed = None if secret is None else digest(secret)
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                if await self._clients.count_unused(tx, KEPT_SECONDS, MAX_UNUSED) >= MAX_UNUSED:
                    raise LimitReached("Too many clients have registered in the last hour: try again later")
                await self._clients.remove_unused(tx, MAX_UNUSED - 1, KEPT_SECONDS, UNUSED_DAYS, IDLE_DAYS)
                client = await self._clients.add(tx, client_id, name, uris, hashed)
        return NewClient(client, str(method), secret)

    async def find(self, client_id: str) -> Client | None:
        """The client with this id."""
        if "\x00" in client_id:
            return None
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                return await self._clients.find(tx, client_id)

    async def authenticated(self, client_id: str, secret: str | None) -> Client:
        """The client that sends a request; if it has a secret, it must present it."""
        client = await self.find(client_id)
        expected = b"" if client is None or client.secret_digest is None else client.secret_digest
        given = b"" if secret is None else digest(secret)
        if client is None or not hmac.compare_digest(expected, given):
            raise Refusal("invalid_client", "client_id or client_secret is not valid: register the client again")
        return client

    async def note_use(self, client: Client) -> None:
        """A client that was given tokens is kept."""
        with origin.own_work():
            async with self._database.shared_transaction() as tx:
                await self._clients.note_use(tx, client.id)

    def _count(self, address: str) -> None:
        now, source = time.monotonic(), _source(address)
        if len(self._registered) >= MAX_SOURCES:
            self._registered.clear()
        recent = [at for at in self._registered.get(source, ()) if at > now - 60]
        if len(recent) >= REGISTRATIONS_PER_MINUTE:
            raise LimitReached(
                f"Only {REGISTRATIONS_PER_MINUTE} clients per minute may register: try again in a minute"
            )
        self._registered[source] = [*recent, now]


def _source(address: str) -> str:
    """Whose registrations count together: of an IPv6 address its /64, since everybody has at least one of these."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ip.ipv4_mapped or ipaddress.IPv6Address(int(ip) >> 64 << 64))


def is_usable(uri: object) -> bool:
    """Whether a browser may be redirected to an address with a code."""
    return _fault(uri) is None


def _fault(uri: object) -> str | None:
    """Why a browser may not be redirected to an address with a code; None if it may."""
    if not isinstance(uri, str):
        return "must be a string"
    if len(uri) > MAX_URI_CHARACTERS:
        return f"must have at most {MAX_URI_CHARACTERS:,} characters"
    if "#" in uri:
        return "must not have a fragment"
    parts = parsed(uri) if _URI.fullmatch(uri) else None
    if parts is None:
        return "is not an address such as https://app.example.org/callback"
    if "@" in parts.netloc:
        return "must not have a user name or a password"
    if _SYSTEM_SCHEME.fullmatch(parts.scheme):
        return f"has the scheme {parts.scheme}, which is not allowed: use https or the scheme of an application"
    return _fault_of_web(parts) if parts.scheme in ("http", "https") else _fault_of_application(parts)


def _fault_of_application(parts: SplitResult) -> str | None:
    is_drive = len(parts.scheme) == 1
    if is_drive or not ("." in parts.scheme or parts.netloc):
        return "has no scheme of an application, as in app://callback or org.example.app:/callback"
    return None


def _fault_of_web(parts: SplitResult) -> str | None:
    if not _AUTHORITY.fullmatch(parts.netloc):
        return "has no valid host"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "has the scheme http, which is allowed only on loopback: use https"
    return None


def parsed(uri: str) -> SplitResult | None:
    """The parts of an address; None if its host or port is malformed."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts


def is_registered(client: Client, uri: str) -> bool:
    """Whether an address is registered for the client; on loopback with any port, because programs pick a free one."""
    return is_usable(uri) and _without_port(uri) in map(_without_port, client.redirect_uris)


def _without_port(uri: str) -> str:
    """An address on loopback without its port; any other as it is."""
    parts = urlsplit(uri)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return uri
    return parts._replace(netloc=parts.hostname).geturl()
