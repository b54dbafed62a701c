"""The MCP SDK's own client against `recollect serve`: from nothing to tools, refreshed, and disconnected."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO
from urllib.parse import parse_qsl, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from recollect.engine import Engine
from tests.commands import RECOLLECT
from tests.mcp_servers import SECONDS, environment
from tests.oauth_clients import form_of

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


class Storage:
    """What a client keeps between its runs."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    @property
    def given(self) -> OAuthToken:
        assert self.tokens is not None
        return self.tokens

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Somebody with a browser and a key, who allows what a client asks for."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.asked = 0
        self._back: dict[str, str] = {}

    async def open(self, address: str) -> None:
        self.asked += 1
        async with httpx.AsyncClient() as browser:
            page = await browser.get(address)
            assert "Continue only if you started this from that program" in page.text
            choice = form_of(page) | {"key": self.key, "role": "write", "decision": "allow"}
            answer = await browser.post(address.partition("?")[0], data=choice)
        assert answer.status_code == 303, answer.text
        self._back = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._back["code"], state=self._back["state"], iss=self._back["iss"])


@contextmanager
def served(namespace: str, log: TextIO) -> Iterator[str]:
    """The public address of a running `recollect serve`, which must know its port beforehand."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = os.environ | environment(namespace) | {"RECOLLECT_PUBLIC_URL": url, "RECOLLECT_CONSOLE": "false"}
    command = [str(RECOLLECT), "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=settings) as process:
        assert process.stdout is not None
        try:
            assert any(re.search(r"http://\S+/mcp", line) for line in process.stdout), "it did not start"
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SECONDS)


async def test_the_sdks_client_signs_in_from_nothing_refreshes_and_signs_in_again_when_revoked(
    engine: Engine, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = await engine.access.create_key(namespace, "anna's key", "write")
    storage, person = Storage(), Person(key.secret)
    metadata = OAuthClientMetadata(client_name="SDK", redirect_uris=[AnyUrl("http://127.0.0.1:9/callback")])
    with (tmp_path_factory.mktemp("oauth") / "log").open("w") as log, served(namespace, log) as url:
        auth = OAuthClientProvider(f"{url}/mcp", metadata, storage, person.open, person.back)
        async with (
            httpx2.AsyncClient(auth=auth, timeout=SECONDS) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            stored = await client.call_tool("remember", {"text": "The spare key is under the flowerpot."})
            assert not stored.is_error
            first = storage.given
            assert (first.scope, person.asked) == ("read write", 1)

            auth.context.token_expiry_time = 1.0
            found = await client.call_tool("recall", {"query": "Where is the key?"})
            assert "flowerpot" in str(found.structured_content)
            second = storage.given
            assert {first.access_token, first.refresh_token} & {second.access_token, second.refresh_token} == set()
            assert person.asked == 1

            # The person is asked again: the revoked tokens are worth nothing.
            registered = storage.client
            assert registered is not None
            assert registered.client_secret is not None
            ours = (registered.client_id, registered.client_secret)
            httpx.post(f"{url}/revoke", data={"token": str(second.refresh_token)}, auth=ours).raise_for_status()
            assert not (await client.call_tool("recall", {"query": "Where is the key?"})).is_error
            assert person.asked == 2
    (connection,) = await engine.connections.of_namespace(namespace, 10)
    assert (connection.client_name, connection.place, connection.key_id) == ("SDK", "127.0.0.1", key.id)
