"""Both LLM adapters through the providers' own SDKs, against a server that speaks their wire formats."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field

from recollect.engine import Engine
from recollect.errors import LimitReached, Misconfigured, RecollectError, Unavailable
from recollect.inference.failures import Refused
from recollect.inference.llm import REFUSAL_SECONDS, Llm, Prompt, strict_schema
from recollect.inference.providers import Providers
from recollect.inference.requests import breaker, retry
from recollect.memory.accounts.usage import UsageLine
from recollect.settings import Settings
from tests.llm_servers import KEY, Failure, ProviderServer, QuickClock, Raw, Reply, Silence, Truncated, provider_server

SPECS = ("openai:gpt-4o", "anthropic:claude-haiku-4-5")
pytestmark = [
    pytest.mark.parametrize("pooling", ["session"], indirect=True),
    pytest.mark.parametrize("spec", SPECS),
]


class Verdict(BaseModel):
    """What the tests ask a model for."""

    model_config = ConfigDict(extra="forbid")
    score: Annotated[float, Field(ge=0, le=1)]
    reason: str | None = None


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as provider:
        yield provider


@pytest.fixture
def clock() -> QuickClock:
    return QuickClock()


@pytest.fixture
def llm(engine: Engine, provider: ProviderServer, clock: QuickClock, spec: str) -> Llm:
    return Providers(provider.configure(engine.settings), engine.spending, engine.pacing, clock).llm(spec)


@pytest.fixture
def prompt(namespace: str) -> Prompt:
    return Prompt("You are terse.", "What is the capital of Portugal?", "tests", namespace, max_tokens=50)


async def usage(engine: Engine, namespace: str) -> UsageLine:
    (line,) = await engine.spending.lines(namespace, 1)
    return line


async def test_an_answer_arrives_and_is_counted(
    llm: Llm, prompt: Prompt, provider: ProviderServer, engine: Engine, namespace: str, spec: str
) -> None:
    provider.script(Reply("Lisbon.", input_tokens=17, output_tokens=3))
    assert await llm.complete(prompt) == "Lisbon."
    assert llm.model_id == spec
    (asked,) = provider.requests
    assert asked.body["model"] == spec.partition(":")[2]
    assert asked.body["messages"][-1] == {"role": "user", "content": prompt.user}
    assert prompt.system in str(asked.body)
    assert 50 in (asked.body.get("max_tokens"), asked.body.get("max_completion_tokens"))
    assert await usage(engine, namespace) == UsageLine(datetime.now(UTC).date(), "tests", spec, 1, 17, 3)
    assert await engine.spending.spent_today(namespace) == 20


async def test_a_shape_is_asked_for_by_its_schema_and_checked(
    llm: Llm, prompt: Prompt, provider: ProviderServer
) -> None:
    provider.script(Reply('{"score": 0.5, "reason": null}'))
    assert await llm.complete_as(prompt, Verdict) == Verdict(score=0.5)
    body = provider.requests[0].body
    format_of_openai = body.get("response_format", {}).get("json_schema", {})
    schema = format_of_openai.get("schema") or body["output_config"]["format"]["schema"]
    assert schema == strict_schema(Verdict)
    assert (schema["required"], schema["additionalProperties"]) == (["score", "reason"], False)
    assert "minimum" not in str(schema)


@pytest.mark.parametrize(
    "unfit",
    ["I would say 0.5.", '{"score": 7}', '{"score": "0.5"}', '{"score": 0.5, "more": 1}', "[]", '{"score": 0.5'],
)
async def test_an_answer_that_does_not_fit_is_asked_for_once_more(
    llm: Llm, prompt: Prompt, provider: ProviderServer, unfit: str
) -> None:
    provider.script(Reply(unfit), Reply('```json\n{"score": 1.0}\n```'))
    assert (await llm.complete_as(prompt, Verdict)).score == 1.0
    assert "did not fit the schema" in str(provider.requests[1].body["messages"])
    provider.script(Reply(unfit), Reply(unfit))
    with pytest.raises(Unavailable, match="returned an invalid answer twice") as caught:
        await llm.complete_as(prompt, Verdict)
    assert unfit not in str(caught.value)
    assert len(provider.requests) == 4


async def test_a_model_that_takes_no_schema_is_asked_without_for_a_while(
    llm: Llm, prompt: Prompt, provider: ProviderServer, clock: QuickClock
) -> None:
    fits = Reply('{"score": 1.0}')
    provider.script(Failure(400, message="structured outputs are not supported"), fits, fits, fits)
    for _ in range(2):
        assert (await llm.complete_as(prompt, Verdict)).score == 1.0
    clock.time += REFUSAL_SECONDS
    assert (await llm.complete_as(prompt, Verdict)).score == 1.0
    with_schema = ["response_format" in asked.body or "output_config" in asked.body for asked in provider.requests]
    assert with_schema == [True, False, False, True]


@pytest.mark.parametrize(
    "hiccup",
    [Failure(429), Failure(500), Failure(503), Failure(529), Truncated(), Raw("{not json"), Raw("<html>", "text/html")],
    ids=["too fast", "fault", "overloaded", "overloaded too", "cut off", "malformed", "a page"],
)
async def test_what_may_pass_is_tried_again(
    llm: Llm, prompt: Prompt, provider: ProviderServer, hiccup: Failure | Truncated | Raw
) -> None:
    provider.script(hiccup, hiccup, Reply("At last."))
    assert await llm.complete(prompt) == "At last."
    assert len(provider.requests) == 3


async def test_retry_after_is_honoured_in_seconds_and_as_a_date(
    llm: Llm, prompt: Prompt, provider: ProviderServer, clock: QuickClock
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    provider.script(Failure(429, retry_after=11), Failure(429, retry_after=date), Reply("Yes."))
    assert await llm.complete(replace(prompt, seconds=300)) == "Yes."
    # After each pause the request waits for its turn, which was put off as long for everybody.
    pause, _, until_date, _ = [wait for wait in clock.waits if wait > 10]
    assert 11 <= pause < 12
    assert 30 < until_date <= 42


async def test_eight_requests_to_wait_are_obeyed_and_open_no_circuit(
    llm: Llm, prompt: Prompt, provider: ProviderServer
) -> None:
    provider.script(*(Failure(429, retry_after=4) for _ in range(8)), Reply("At last."))
    assert await llm.complete(replace(prompt, seconds=120)) == "At last."
    assert len(provider.requests) == 9


async def test_a_model_that_takes_no_temperature_is_asked_without_for_a_while(
    llm: Llm, prompt: Prompt, provider: ProviderServer, clock: QuickClock
) -> None:
    steady = replace(prompt, temperature=0.0)
    provider.script(Failure(400, message="Unsupported parameter: 'temperature' is not supported with this model."))
    for _ in range(2):
        await llm.complete(steady)
    clock.time += REFUSAL_SECONDS
    await llm.complete(steady)
    assert [asked.body.get("temperature") for asked in provider.requests] == [0.0, None, None, 0.0]


async def test_a_refusal_for_another_reason_changes_no_temperature(
    llm: Llm, prompt: Prompt, provider: ProviderServer
) -> None:
    steady = replace(prompt, temperature=0.0)
    provider.script(Failure(400, message="Your input was flagged."))
    with pytest.raises(Refused, match=r"refused the request \(400\): Your input was flagged\.$"):
        await llm.complete(steady)
    await llm.complete(steady)
    assert [asked.body.get("temperature") for asked in provider.requests] == [0.0, 0.0]


async def test_a_provider_that_stays_down_is_left_alone_and_the_error_says_so(
    llm: Llm, prompt: Prompt, provider: ProviderServer, engine: Engine, namespace: str
) -> None:
    provider.answer = lambda asked: Failure(503, message="Overloaded.")
    for _ in range(breaker.FAILURES_TO_OPEN // retry.ATTEMPTS):
        with pytest.raises(Unavailable, match=r"is unavailable \(503\)"):
            await llm.complete(prompt)
    with pytest.raises(Unavailable, match="skipped for now"):
        await llm.complete(prompt)
    assert len(provider.requests) == breaker.FAILURES_TO_OPEN
    assert await engine.spending.spent_today(namespace) == 0


async def test_an_answer_that_was_lost_counts_because_it_may_be_billed(
    llm: Llm, prompt: Prompt, provider: ProviderServer, engine: Engine, namespace: str
) -> None:
    provider.script(Truncated(), Reply("Here.", input_tokens=10, output_tokens=5))
    await llm.complete(prompt)
    assert await engine.spending.spent_today(namespace) > 15 + 50
    assert (await usage(engine, namespace)).requests == 2


async def test_a_silent_provider_is_given_up_in_time(
    engine: Engine, provider: ProviderServer, prompt: Prompt, spec: str
) -> None:
    settings = provider.configure(engine.settings, llm_deadline_seconds=0.5)
    llm = Providers(settings, engine.spending, engine.pacing, QuickClock()).llm(spec)
    provider.answer = lambda asked: Silence()
    with pytest.raises(Unavailable, match="did not answer"):
        await llm.complete(prompt)


async def test_nobody_at_the_address_costs_nothing_and_says_what_to_check(
    engine: Engine, prompt: Prompt, namespace: str, spec: str
) -> None:
    nobody = "http://127.0.0.1:1"
    settings = engine.settings.model_copy(update={"openai_base_url": nobody, "anthropic_base_url": nobody})
    with pytest.raises(Unavailable, match=r"Cannot reach .*_BASE_URL"):
        await Providers(settings, engine.spending, engine.pacing, QuickClock()).llm(spec).complete(prompt)
    assert await engine.spending.spent_today(namespace) == 0


async def test_without_a_key_the_error_names_the_setting(
    settings: Settings, engine: Engine, prompt: Prompt, spec: str
) -> None:
    name = spec.partition(":")[0].upper()
    with pytest.raises(Misconfigured, match=f"API key not configured: set RECOLLECT_{name}_API_KEY"):
        await Providers(settings, engine.spending, engine.pacing).llm(spec).complete(prompt)


@pytest.mark.parametrize(
    ("failure", "category", "sentence"),
    [
        (Failure(403), Misconfigured, "rejected the API key"),
        (Failure(404, message="The model `gpt-9` does not exist"), Misconfigured, "The model `gpt-9` does not exist"),
        (Failure(413), LimitReached, "too long"),
        (Failure(400, message=f"bad request of {KEY}"), Misconfigured, "refused the request"),
    ],
    ids=["forbidden", "unknown model", "too long", "bad request"],
)
async def test_a_refusal_is_one_sentence_and_is_not_repeated(
    llm: Llm, prompt: Prompt, provider: ProviderServer, failure: Failure, category: type[RecollectError], sentence: str
) -> None:
    provider.script(failure)
    with pytest.raises(category, match=sentence) as caught:
        await llm.complete(prompt)
    assert len(provider.requests) == 1
    assert KEY not in str(caught.value)


async def test_a_wrong_key_is_said_without_the_key(
    engine: Engine, provider: ProviderServer, prompt: Prompt, spec: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    wrong = "sk-wrong-secret-42"
    settings = provider.configure(engine.settings, openai_api_key=wrong, anthropic_api_key=wrong)
    with pytest.raises(Misconfigured, match=r"rejected the API key \(401\): check RECOLLECT_") as caught:
        await Providers(settings, engine.spending, engine.pacing, QuickClock()).llm(spec).complete(prompt)
    assert caught.value.__cause__ is None
    assert wrong not in str(caught.value) + caplog.text + repr(settings)
    assert prompt.user not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "category", "sentence"),
    [
        (Reply("half of", stop="length"), LimitReached, "cut off at 50 tokens"),
        (Reply("", stop="content_filter"), Unavailable, "declined to answer"),
        (Reply(""), Unavailable, "declined to answer"),
    ],
    ids=["too long", "declined", "empty"],
)
async def test_an_answer_that_is_none_is_an_error_and_is_paid_for(
    llm: Llm,
    prompt: Prompt,
    provider: ProviderServer,
    engine: Engine,
    namespace: str,
    reply: Reply,
    category: type[RecollectError],
    sentence: str,
) -> None:
    provider.script(reply)
    with pytest.raises(category, match=sentence):
        await llm.complete(prompt)
    assert await engine.spending.spent_today(namespace) == reply.input_tokens + reply.output_tokens


async def test_two_users_of_a_model_share_its_limit(
    engine: Engine, provider: ProviderServer, prompt: Prompt, clock: QuickClock, spec: str
) -> None:
    slow = provider.configure(engine.settings, llm_requests_per_second=0.1)
    shared = Providers(slow, engine.spending, engine.pacing, clock)
    await shared.llm(spec).complete(prompt)
    await shared.llm(spec).complete(prompt)
    assert 0 < sum(clock.waits) <= 10


@pytest.mark.parametrize("name", ["gpt-4o", "openai:", "mistral:large", "openai:a b"])
async def test_a_name_that_is_none_is_refused(engine: Engine, spec: str, name: str) -> None:
    with pytest.raises(Misconfigured, match="does not name a model"):
        engine.providers.llm(name)
