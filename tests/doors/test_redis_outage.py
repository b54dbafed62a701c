"""Redis that is stopped or hangs: whoever looks is told so, soon, and all but short-term memory works."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from recollect.engine import Engine
from recollect.settings import Settings
from tests.commands import RECOLLECT
from tests.rest_servers import serving
from tests.valkey import stoppable, url_of, with_redis

pytestmark = pytest.mark.parametrize("pooling", ["session"], indirect=True)


@asynccontextmanager
async def hanging() -> AsyncIterator[str]:
    """The address of a server that accepts and never answers, as a Redis that is stopped in its tracks."""
    release = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        release.set()
        server.close()


async def statuses(client: httpx.AsyncClient) -> list[str]:
    """Of both routes that say how a server is."""
    answers = [await client.get(path) for path in ("/health", "/ready")]
    assert {answer.status_code for answer in answers} == {200}
    for answer in answers:
        assert ("Redis" in (answer.json().get("detail") or "")) == (answer.json()["status"] == "degraded")
    return [answer.json()["status"] for answer in answers]


async def test_a_redis_that_is_away_shows_wherever_an_operator_looks(settings: Settings) -> None:
    with stoppable() as redis:
        place = with_redis(settings, url_of(redis))
        async with serving(await Engine.open(place)) as client:
            assert await statuses(client) == ["degraded", "degraded"]
            status = subprocess.run(
                [RECOLLECT, "status"],
                capture_output=True,
                text=True,
                timeout=60,
                env=os.environ | {"RECOLLECT_REDIS_URL": url_of(redis)},
            )
            assert status.returncode == 1
            assert "Redis does not answer" in status.stdout
            assert (await client.get("/console")).text.count("Redis does not answer") == 2
            memory = {"messages": "The ferry leaves at seven.", "category": "fact", "user_id": "ann"}
            assert (await client.post("/ltm/memories", json=memory)).status_code == 200
            redis.start()
            assert await statuses(client) == ["ok", "ok"]
            assert (await client.get("/health")).json() == {"status": "ok"}


async def test_a_redis_that_hangs_is_told_within_seconds(settings: Settings) -> None:
    async with hanging() as url, serving(await Engine.open(with_redis(settings, url))) as client:
        assert await statuses(client) == ["degraded", "degraded"]
        answer = await client.get("/stm/s/messages", timeout=30)
        assert answer.status_code == 503
        assert answer.json() == {"detail": "Redis not initialized"}
