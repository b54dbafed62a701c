"""Callers share a server: one alone has all of it, one among others its part, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from recollect.doors.rest.edge import fair_share
from recollect.doors.rest.edge.fair_share import SHARED, FairShare
from recollect.engine import Engine
from tests.rest_servers import listening


class Work:
    """Requests that stay at work until they are told to end."""

    def __init__(self, share: FairShare) -> None:
        self._share = share
        self.at_work: list[str] = []

    @asynccontextmanager
    async def requests(self, caller: str, count: int) -> AsyncIterator[list[asyncio.Task[None]]]:
        end = asyncio.Event()
        tasks = [asyncio.create_task(self._request(caller, end)) for _ in range(count)]
        await self.settled()
        try:
            yield tasks
        finally:
            end.set()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, caller: str, end: asyncio.Event) -> None:
        async with self._share.turn(caller):
            self.at_work.append(caller)
            try:
                await end.wait()
            finally:
                self.at_work.remove(caller)

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


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_many_requests_of_two_keys_are_all_answered(engine: Engine, namespace: str) -> None:
    keys = [(await engine.access.create_key(namespace)).secret for _ in range(2)]
    async with listening(engine) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        asked = [http.get("/ready", headers={"Authorization": f"Bearer {keys[n % 2]}"}) for n in range(60)]
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}
