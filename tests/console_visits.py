"""A browser for tests that needs no browser: keeps cookies, follows forms, sends the token of the page."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape

import httpx

from recollect.engine import Engine
from tests.rest_servers import listening

_END = re.compile(r"</(?:td|th|dt|dd|p|h\d|li|caption)>")
_TAG = re.compile(r"<(?!/?(?:del|ins|mark)>)[^>]*>")
_TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


class Browser:
    """One person's browser."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def open(self, path: str, **headers: str) -> httpx.Response:
        """A page, as it comes, without following where it leads."""
        return await self.http.get(path, headers=headers)

    async def text(self, path: str) -> str:
        """A page that must be there."""
        answer = await self.open(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.text

    async def send(self, page: str, action: str, token: str | None = None, **fields: str) -> httpx.Response:
        """A form of a page, with its token or another one."""
        if token is None:
            token = token_of((await self.open(page)).text)
        return await self.http.post(action, data=fields | {"csrf": token})

    async def sign_in(self, secret: str, to: str = "") -> httpx.Response:
        return await self.send("/console/sign-in", "/console/sign-in", key=secret, next=to)


def token_of(page: str) -> str:
    """The token in the forms of a page."""
    found = _TOKEN.search(page)
    assert found is not None, "the page has no form"
    return found[1]


def words(page: str) -> str:
    """What a page says on one line, with the marks of what changed or was asked for."""
    return " ".join(unescape(_TAG.sub("", _END.sub(" ", page))).split())


@asynccontextmanager
async def browsing(engine: Engine, host: str = "127.0.0.1") -> AsyncIterator[Browser]:
    """A browser before a server over an engine."""
    async with listening(engine, host) as url, another_browser(url) as browser:
        yield browser


@asynccontextmanager
async def another_browser(url: str) -> AsyncIterator[Browser]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        yield Browser(http)
