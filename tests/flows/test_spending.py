"""The budget of a day holds whoever asks at once, over processes, and says clearly that it is spent."""

import asyncio
from collections.abc import Iterator

import pytest

from recollect.engine import Engine
from recollect.errors import LimitReached
from recollect.inference.llm import Prompt
from recollect.inference.providers import Providers
from recollect.inference.requests.meter import Purpose, Tokens
from recollect.settings import Settings
from tests.llm_servers import ProviderServer, QuickClock, Reply, provider_server

CALLERS = 32
BUDGET = 1000
MOST = 100


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("RECOLLECT_LLM_DAILY_TOKENS", str(BUDGET))
    return Settings()


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


async def test_callers_at_once_never_reserve_more_than_the_budget(
    settings: Settings, engine: Engine, namespace: str
) -> None:
    another = await Engine.open(settings)
    purpose = Purpose(namespace, "tests", "a model")
    taken = await asyncio.gather(
        *(who.spending.reserve(purpose, MOST) for who in (engine, another) for _ in range(CALLERS // 2)),
        return_exceptions=True,
    )
    await another.close()
    refused = [result for result in taken if isinstance(result, BaseException)]
    assert all(isinstance(problem, LimitReached) for problem in refused)
    assert len(taken) - len(refused) == BUDGET // MOST
    assert await engine.spending.spent_today(namespace) == BUDGET


@pytest.mark.parametrize("pooling", ["session"], indirect=True)
async def test_through_the_sdk_callers_at_once_never_spend_more_than_the_budget(
    engine: Engine, namespace: str, provider: ProviderServer
) -> None:
    # As much as the request allows: what a provider counts is known only afterwards.
    reply = Reply("Done.", input_tokens=60, output_tokens=60)
    provider.answer = lambda asked: reply
    llm = Providers(provider.configure(engine.settings), engine.spending, engine.pacing, QuickClock()).llm(
        "openai:gpt-4o"
    )
    prompt = Prompt("", "Say done.", "tests", namespace, max_tokens=60)
    done = await asyncio.gather(*(llm.complete(prompt) for _ in range(CALLERS)), return_exceptions=True)
    refused = [result for result in done if isinstance(result, BaseException)]
    assert refused
    assert all(isinstance(problem, LimitReached) for problem in refused)
    assert len(provider.requests) == CALLERS - len(refused)
    (line,) = await engine.spending.lines(namespace, 1)
    spent = await engine.spending.spent_today(namespace)
    assert spent == line.input_tokens + line.output_tokens == 120 * len(provider.requests)
    assert 0 < spent <= BUDGET


async def test_what_was_set_aside_and_not_used_is_given_back(engine: Engine, namespace: str) -> None:
    purpose = Purpose(namespace, "tests", "a model")
    for _ in range(5):
        await engine.spending.settle(await engine.spending.reserve(purpose, 900), Tokens(10, 5))
        await engine.spending.release(await engine.spending.reserve(purpose, 900))
    assert await engine.spending.spent_today(namespace) == 75
    (line,) = await engine.spending.lines(namespace, 1)
    assert (line.requests, line.input_tokens, line.output_tokens) == (5, 50, 25)


async def test_a_spent_budget_says_how_much_it_is_and_which_setting_raises_it(engine: Engine, namespace: str) -> None:
    with pytest.raises(
        LimitReached, match=r"0 of 1,000 tokens are used or reserved.*need 1,001\. Raise RECOLLECT_LLM_DAILY_TOKENS"
    ):
        await engine.spending.reserve(Purpose(namespace, "tests", "a model"), BUDGET + 1)


async def test_one_namespace_does_not_spend_the_budget_of_another(engine: Engine, namespace: str) -> None:
    await engine.spending.reserve(Purpose(namespace, "tests", "a model"), BUDGET)
    await engine.spending.reserve(Purpose(f"{namespace}-other", "tests", "a model"), BUDGET)
