"""A client that signs in step by step, as the specification has it, so that a test can do any step wrong."""

import base64
import hashlib
import html
import re
import secrets
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

CALLBACK = "https://app.example.org/callback"
VERIFIER = secrets.token_urlsafe(48)
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")

_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class OAuthClient:
    """One registered client, and the browser of the person who connects it."""

    def __init__(self, http: httpx.AsyncClient, registered: dict[str, Any], resource: str) -> None:
        self.http = http
        self.registered = registered
        self.id: str = registered["client_id"]
        self.resource = resource

    @classmethod
    async def register(cls, http: httpx.AsyncClient, resource: str, **metadata: Any) -> "OAuthClient":
        given = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none", "client_name": "Test"} | metadata
        answer = await http.post("/register", json=given)
        assert answer.status_code == 201, answer.text
        return cls(http, answer.json(), resource)

    def request(self, **changes: str | None) -> dict[str, str]:
        """The parameters of a request; None leaves one out."""
        parameters = {
            "client_id": self.id,
            "redirect_uri": self.registered["redirect_uris"][0],
            "response_type": "code",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "a state",
            "scope": "read write",
            "resource": self.resource,
        }
        return {name: value for name, value in {**parameters, **changes}.items() if value is not None}

    async def asked(self, **changes: str | None) -> httpx.Response:
        """The page that the person sees, or the way back."""
        return await self.http.get("/authorize", params=self.request(**changes))

    async def answered(self, page: httpx.Response, **choice: str | None) -> httpx.Response:
        """What the form on the page leads to."""
        assert page.status_code == 200, page.text
        given = form_of(page) | {"decision": "allow", "role": "write"} | choice
        return await self.http.post(
            "/authorize", data={name: value for name, value in given.items() if value is not None}
        )

    async def code(self, key: str, role: str = "write", **changes: str | None) -> str:
        """A code, allowed with a key."""
        back = await self.answered(await self.asked(**changes), key=key, role=role)
        assert back.status_code == 303, back.text
        return query_of(back)["code"]

    async def exchanged(self, code: str, **changes: str | None) -> httpx.Response:
        return await self.token(
            grant_type="authorization_code",
            code=code,
            code_verifier=VERIFIER,
            **{"redirect_uri": self.registered["redirect_uris"][0], **changes},
        )

    async def refreshed(self, token: str, **changes: str | None) -> httpx.Response:
        return await self.token(grant_type="refresh_token", refresh_token=token, **changes)

    async def token(self, **given: str | None) -> httpx.Response:
        form = {"client_id": self.id, "client_secret": self.registered.get("client_secret"), "resource": self.resource}
        sent = {name: value for name, value in {**form, **given}.items() if value is not None}
        return await self.http.post("/token", data=sent)

    async def connected(self, key: str, role: str = "write") -> dict[str, Any]:
        """The tokens of a sign-in that goes well."""
        answer = await self.exchanged(await self.code(key, role))
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    async def calls(self, token: str, path: str = "/mcp", tool: str = "remember", **arguments: str) -> httpx.Response:
        """An MCP request; by default it stores something."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments or {"text": "The kettle is new"}},
        }
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        return await self.http.post(path, json=message, headers=headers)


def form_of(page: httpx.Response) -> dict[str, str]:
    """The hidden fields of a form."""
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(page.text)}


def query_of(back: httpx.Response) -> dict[str, str]:
    """What the browser brings back to the client, each value once."""
    pairs = parse_qsl(urlsplit(back.headers["location"]).query)
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)
