"""The SDKs are loaded only by those who use them, and a missing one is said with the command that installs it."""

import json
import subprocess
import sys
from collections.abc import Iterator

import anthropic
import openai
import pytest

from recollect.errors import Misconfigured
from recollect.identifiers import uuid7
from recollect.inference.llm import Prompt
from recollect.inference.providers import Providers
from recollect.inference.requests.limits import Limits, Turn
from recollect.inference.requests.meter import Purpose, Reservation, Tokens
from recollect.settings import Settings
from tests.llm_servers import KEY, ProviderServer, QuickClock, Reply, Truncated, provider_server

SAID = "An answer in a few pieces."


class Free:
    """A meter and turns for those who pay nothing and need not wait."""

    async def reserve(self, purpose: Purpose, tokens: int) -> Reservation:
        raise AssertionError("nothing is reserved before the package is found")

    async def settle(self, reservation: Reservation, used: Tokens) -> None: ...

    async def release(self, reservation: Reservation) -> None: ...

    async def take(self, model: str, limits: Limits, within: float) -> Turn | None:
        return Turn(model, uuid7(), 0.0)

    async def end(self, turn: Turn) -> None: ...

    async def postpone(self, model: str, seconds: float) -> None: ...


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


def test_the_engine_loads_no_sdk_by_itself() -> None:
    program = "import json, sys, recollect.engine; print(json.dumps(list(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not {"openai", "anthropic", "httpx2"}.intersection(json.loads(printed.stdout))


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "anthropic:claude-haiku-4-5"])
async def test_a_missing_package_is_said_with_what_installs_it(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = spec.partition(":")[0]
    monkeypatch.setitem(sys.modules, package, None)
    llm = Providers(Settings(openai_api_key=KEY, anthropic_api_key=KEY), Free(), Free(), QuickClock()).llm(spec)
    with pytest.raises(Misconfigured, match=rf"needs the package {package}.*pip install 'recollect\[llm\]'"):
        await llm.complete(Prompt("", "Hello?", "tests", "default"))


async def openai_stream(provider: ProviderServer) -> str:
    async with openai.AsyncOpenAI(api_key=KEY, base_url=provider.openai_url, max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "Hello?"}], stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def anthropic_stream(provider: ProviderServer) -> str:
    async with (
        anthropic.AsyncAnthropic(api_key=KEY, base_url=provider.anthropic_url, max_retries=0) as client,
        client.messages.stream(
            model="claude-haiku-4-5", max_tokens=50, messages=[{"role": "user", "content": "Hello?"}]
        ) as stream,
    ):
        return "".join([piece async for piece in stream.text_stream])


async def test_the_test_server_streams_what_the_sdks_can_read(provider: ProviderServer) -> None:
    provider.answer = lambda asked: Reply(SAID)
    assert await openai_stream(provider) == SAID
    assert await anthropic_stream(provider) == SAID


async def test_a_stream_that_is_cut_off_is_an_error_of_the_sdks(provider: ProviderServer) -> None:
    provider.answer = lambda asked: Truncated(SAID)
    with pytest.raises(Exception, match=r"peer closed connection|Connection error|incomplete"):
        await openai_stream(provider)
    with pytest.raises(Exception, match=r"peer closed connection|Connection error|incomplete"):
        await anthropic_stream(provider)
