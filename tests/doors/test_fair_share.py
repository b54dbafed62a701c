"""Callers share a server: one alone has all of it, one among others its part, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException

from recollect.doors.rest.edge import fair_share
from recollect.doors.rest.edge.fair_share import SHARED, FairShare
from recollect.doors.rest.edge.gate import STRANGERS
from recollect.engine import Engine
from recollect.settings import Settings
from tests.oauth_clients import OAuthClient
from tests.rest_servers import listening
from tests.waiting import DEADLINE_SECONDS

SLOW = (
    b"POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\na"
)


class Work:
    """Requests that stay at work until they are told to end."""

    def __init__(self, share: FairShare) -> None:
        self._share = share
        self.at_work: list[str] = []

    @asynccontextmanager
    async def requests(self, caller: str, count: int, member: str = "") -> AsyncIterator[list[asyncio.Task[None]]]:
        end = asyncio.Event()
        tasks = [asyncio.create_task(self._request(caller, member, end)) for _ in range(count)]
        await self.settled()
        try:
            yield tasks
        finally:
            end.set()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, caller: str, member: str, end: asyncio.Event) -> None:
        async with self._share.turn(caller, member):
            self.at_work.append(member or caller)
            try:
                await end.wait()
            finally:
                self.at_work.remove(member or caller)

    async def settled(self) -> None:
        """Whatever can begin has begun."""
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request counts for so short a time that a test can wait until it no longer does."""
    monkeypatch.setattr(fair_share, "COUNTED_SECONDS", 0.01)


async def test_a_caller_alone_has_all_of_the_server() -> None:
    work = Work(FairShare())
    async with work.requests("greedy", 100):
        assert len(work.at_work) == 100


async def test_a_caller_among_others_has_its_share_and_the_rest_waits() -> None:
    work = Work(FairShare())
    async with work.requests("polite", 1), work.requests("greedy", 100):
        assert work.at_work.count("greedy") == SHARED // 2
        assert work.at_work.count("polite") == 1
        async with work.requests("another", 1):
            assert work.at_work.count("another") == 1
    assert work.at_work == []


async def test_everybody_has_a_turn_however_many_share() -> None:
    work = Work(FairShare())
    async with work.requests("greedy", 1):
        for number in range(3 * SHARED):
            async with work.requests(f"polite {number}", 2):
                assert work.at_work.count(f"polite {number}") >= 1


async def test_who_gives_up_while_waiting_takes_nobodys_place() -> None:
    work = Work(FairShare())
    async with work.requests("polite", 1), work.requests("greedy", SHARED // 2), work.requests("greedy", 3) as waiting:
        for request in waiting:
            request.cancel()
        await work.settled()
        assert work.at_work.count("greedy") == SHARED // 2
    assert work.at_work == []
    async with work.requests("greedy", 2):
        assert work.at_work.count("greedy") == 2


@pytest.mark.usefixtures("brief")
async def test_a_request_that_takes_long_keeps_none_of_its_caller_waiting() -> None:
    work = Work(FairShare())
    async with work.requests("polite", 1), work.requests("slow", SHARED):
        while work.at_work.count("slow") < SHARED:
            await asyncio.sleep(0)
    assert work.at_work == []


async def test_who_gives_up_as_a_place_becomes_free_is_only_cancelled() -> None:
    work = Work(FairShare())
    async with (
        work.requests("polite", 1),
        work.requests("greedy", SHARED // 2) as at_work,
        work.requests("greedy", 1) as waiting,
    ):
        both = [at_work[0], waiting[0]]
        for request in both:
            request.cancel()
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2


async def test_members_of_one_caller_take_turns() -> None:
    work = Work(FairShare())
    async with (
        work.requests("polite", 1),
        work.requests("strangers", SHARED // 2, "greedy") as at_work,
        work.requests("strangers", 100, "greedy"),
        work.requests("strangers", 1, "another"),
    ):
        assert work.at_work.count("another") == 0
        for request in at_work[:2]:
            request.cancel()
        await work.settled()
        assert work.at_work.count("another") == 1
        assert work.at_work.count("greedy") == SHARED // 2 - 1
    assert work.at_work == []


async def test_nobody_waits_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "WAIT_SECONDS", 0.01)
    work = Work(FairShare())
    async with work.requests("polite", 1), work.requests("greedy", SHARED // 2), work.requests("greedy", 1) as waiting:
        with pytest.raises(HTTPException) as refused:
            await waiting[0]
        assert refused.value.status_code == 429
        assert "Retry-After" in (refused.value.headers or {})
        assert work.at_work.count("greedy") == SHARED // 2
    async with work.requests("polite", 1), work.requests("greedy", 1):
        assert work.at_work.count("greedy") == 1


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_many_requests_of_two_keys_are_all_answered(engine: Engine, namespace: str) -> None:
    keys = [(await engine.access.create_key(namespace)).secret for _ in range(2)]
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        asked = [http.get("/ready", headers={"Authorization": f"Bearer {keys[n % 2]}"}) for n in range(60)]
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_senders_of_wrong_user_keys_share_one_place_until_one_is_right(
    engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers: list[str] = []
    turn = FairShare.turn

    def noted(share: FairShare, caller: str, member: str = "") -> Any:
        callers.append(caller)
        return turn(share, caller, member)

    monkeypatch.setattr(FairShare, "turn", noted)
    user = await engine.access.create_user_key(namespace, "anna")
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=DEADLINE_SECONDS) as http:
        for key, status in (("uk_wrong", 401), (user.secret, 200), (user.secret, 200)):
            body = {"user_id": "anna", "user_key": key, "query": "tea", "scope": ["all_user_memory"]}
            assert (await http.post("/memories/search", json=body)).status_code == status
    assert callers == [STRANGERS, STRANGERS, "from:127.0.0.1"]


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_slow_senders_keep_no_client_from_its_tokens(
    settings: Settings, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Others are always present, and a turn lasts until the request ends.
    monkeypatch.setattr(fair_share, "PRESENT_SECONDS", 1e9)
    monkeypatch.setattr(fair_share, "COUNTED_SECONDS", 1e9)
    engine = await Engine.open(settings.model_copy(update={"public_url": "https://memory.example.org"}))
    key = (await engine.access.create_key(namespace, role="write")).secret
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=DEADLINE_SECONDS) as http:
        client = await OAuthClient.register(http, "https://memory.example.org/mcp")
        tokens = await client.connected(key)
        assert (await http.get("/ready", headers={"Authorization": f"Bearer {key}"})).status_code == 200
        host, port = url.removeprefix("http://").split(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(3 * SHARED)]
        for _, writer in slow:
            writer.write(SLOW)
            await writer.drain()
        assert (await http.get("/.well-known/oauth-authorization-server")).status_code == 200
        assert (await client.refreshed(tokens["refresh_token"])).status_code == 200
        for _, writer in slow:
            writer.close()
