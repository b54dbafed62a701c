"""Two judges: a document is stored with both scores or not at all; their agreement is Cohen's kappa."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from recollect.engine import Engine
from recollect.errors import Invalid, LimitReached, Misconfigured, NotFound, RecollectError, Unavailable
from recollect.flows.cognitive.golden_test import Entry
from recollect.flows.cognitive.judge import (
    ApiKeyMissing,
    Document,
    JudgeFailed,
    Judges,
    JudgeUnusable,
    Unjudged,
    reservations,
)
from recollect.inference.failures import NoUsableKey, Refused
from recollect.inference.llm import Prompt, WrittenLlm
from recollect.inference.requests.limits import SystemClock
from recollect.inference.requests.meter import BudgetSpent
from recollect.memory.cognitive.judging import Judging

QUERY = "What do octopuses taste with?"
DOCUMENTS = [Document(number, f"Text {number} about octopuses.") for number in range(1, 5)]


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@dataclass
class Provider:
    """A provider's model in the test's own process: says what the test wants it to say of each text."""

    model_id: str
    answer: Callable[[str], str]
    asked: list[Prompt] = field(default_factory=list)

    async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
        self.asked.append(prompt)
        await asyncio.sleep(0)
        return self.answer(prompt.user)


def scoring(*scores: float) -> Callable[[str], str]:
    """Scores by the number of the text."""

    def answer(user: str) -> str:
        (number,) = re.findall(r"Text (\d+) about", user)
        return json.dumps({"reason": f"Reason {number}.", "score": scores[int(number) - 1]})

    return answer


def failing(problem: RecollectError, at: str = "") -> Callable[[str], str]:
    def answer(user: str) -> str:
        if at in user:
            raise problem
        return json.dumps({"reason": "Fine.", "score": 1.0})

    return answer


def court(engine: Engine, gpt: Provider | None, claude: Provider | None, *, seconds: float = 50.0) -> Judges:
    gpt_llm, claude_llm = (
        None if provider is None else WrittenLlm(provider, SystemClock(), 30.0) for provider in (gpt, claude)
    )
    return Judges(engine.database, engine.capabilities.golden, Judging(), gpt_llm, claude_llm, seconds)


async def golden(engine: Engine, namespace: str) -> int:
    (added,) = await engine.golden_test.add(namespace, [Entry(QUERY)])
    return added.id


async def stored(engine: Engine, namespace: str) -> int:
    async with engine.database.transaction(namespace) as tx:
        return int(
            await tx._connection.fetchval(
                "select (select count(*) from judgements where namespace = $1)"
                " + (select count(*) from judge_scores where namespace = $1)",
                namespace,
            )
        )


async def test_every_score_of_both_judges_is_stored_with_their_agreement(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    gpt = Provider("openai:gpt-4o", scoring(0.9, 0.8, 0.1, 0.6))
    claude = Provider("anthropic:claude-haiku", scoring(1.0, 0.7, 0.0, 0.5))
    bench = court(engine, gpt, claude)
    heard = await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS)
    judgement, evaluation = heard.judgement, heard.judgement.evaluation
    assert heard.unjudged == ()
    assert [evaluation.judge1_score, evaluation.judge2_score, evaluation.kappa] == pytest.approx([0.6, 0.55, 0.5])
    assert evaluation.agreement == "moderate"
    assert (evaluation.judge1_model, evaluation.judge2_model) == ("openai:gpt-4o", "anthropic:claude-haiku")
    assert [(score.document_id, score.judge1_score, score.judge2_score) for score in evaluation.scores] == [
        (1, 0.9, 1.0),
        (2, 0.8, 0.7),
        (3, 0.1, 0.0),
        (4, 0.6, 0.5),
    ]
    assert [score.judge2_reason for score in evaluation.scores] == [f"Reason {n}." for n in range(1, 5)]
    assert await bench.judgements(namespace, query_id) == [judgement]
    again = (await bench.evaluate(namespace, query_id, QUERY.upper(), DOCUMENTS[:1])).judgement
    assert await bench.judgements(namespace, query_id) == [again, judgement]


async def test_each_judge_sees_each_document_alone_and_neither_the_other(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    gpt, claude = Provider("one", scoring(0.1, 0.2, 0.3, 0.4)), Provider("two", scoring(0.6, 0.7, 0.8, 0.9))
    await court(engine, gpt, claude).evaluate(namespace, query_id, QUERY, DOCUMENTS)
    for provider in (gpt, claude):
        assert [re.findall(r"Text (\d)", prompt.user) for prompt in provider.asked] == [["1"], ["2"], ["3"], ["4"]]
        assert all(QUERY in prompt.user for prompt in provider.asked)
        assert {(prompt.feature, prompt.namespace) for prompt in provider.asked} == {("judges", namespace)}


async def test_both_judges_work_at_the_same_time(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    met = asyncio.Barrier(2)

    class Meeting(Provider):
        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            await met.wait()
            return await Provider.write(self, prompt, seconds, schema)

    judges = [Meeting(name, scoring(1.0)) for name in ("one", "two")]
    async with asyncio.timeout(30):
        await court(engine, *judges).evaluate(namespace, query_id, QUERY, DOCUMENTS[:1])


@pytest.mark.parametrize("judge", [1, 2])
@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (Unavailable("The provider is down."), JudgeFailed),
        (BudgetSpent("The budget of the day is spent."), JudgeUnusable),
        (NoUsableKey("The provider refuses the key."), ApiKeyMissing),
        (Misconfigured("The model does not exist."), JudgeUnusable),
        (Refused("The model takes no such request."), JudgeFailed),
    ],
)
async def test_if_one_judge_fails_at_everything_nothing_is_stored_and_the_error_names_it(
    engine: Engine, namespace: str, judge: int, problem: RecollectError, error: type[Exception]
) -> None:
    query_id = await golden(engine, namespace)
    judges = [Provider("model-1", scoring(*[0.9] * 4)), Provider("model-2", scoring(*[0.9] * 4))]
    judges[judge - 1].answer = failing(problem)
    with pytest.raises(
        RecollectError, match=rf"^Nothing was stored: Judge {judge} \(model-{judge}\) failed: {problem}$"
    ) as raised:
        await court(engine, *judges).evaluate(namespace, query_id, QUERY, DOCUMENTS)
    assert type(raised.value) is error
    assert await stored(engine, namespace) == 0


@pytest.mark.parametrize("judge", [1, 2])
@pytest.mark.parametrize("problem", [Unavailable("Down."), Refused("Flagged."), LimitReached("Too long.")])
async def test_a_document_that_one_judge_fails_at_costs_no_other_its_scores(
    engine: Engine,
    namespace: str,
    judge: int,
    problem: RecollectError,
    caplog: pytest.LogCaptureFixture,
) -> None:
    query_id = await golden(engine, namespace)
    judges = [Provider("model-1", scoring(*[0.9] * 4)), Provider("model-2", scoring(*[0.9] * 4))]
    judges[judge - 1].answer = failing(problem, at="Text 3")
    bench = court(engine, *judges)
    heard = await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS)
    assert heard.unjudged == (Unjudged(3, f"Judge {judge} (model-{judge}) failed: {problem}"),)
    assert reservations(heard) == ["1 of 4 documents could not be judged and are excluded."]
    (judgement,) = await bench.judgements(namespace, query_id)
    assert [score.document_id for score in judgement.evaluation.scores] == [1, 2, 4]
    assert judgement.evaluation.judge1_score == pytest.approx(0.9 if judge == 2 else 1.0, abs=0.11)
    lines = [(record.levelname, record.getMessage(), record.exc_info) for record in caplog.records]
    assert lines == [("WARNING", f"Judges failed for 1 of 4 documents of query {query_id}", None)]


async def test_an_unusable_judge_ends_the_call_and_what_both_had_judged_is_stored(
    engine: Engine, namespace: str
) -> None:
    query_id = await golden(engine, namespace)

    class Careful(Provider):
        """Never comes to the end of the last document."""

        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            if "Text 4" in prompt.user:
                await asyncio.Event().wait()
            return await Provider.write(self, prompt, seconds, schema)

    class Spent(Provider):
        """Has money for the first document."""

        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            if "Text 1" in prompt.user:
                return await Provider.write(self, prompt, seconds, schema)
            for _ in range(20):
                await asyncio.sleep(0)
            raise BudgetSpent("Spent.")

    bench = court(engine, Careful("one", scoring(*[0.9] * 4)), Spent("two", scoring(*[0.9] * 4)))
    async with asyncio.timeout(30):
        heard = await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS)
    assert [score.document_id for score in heard.judgement.evaluation.scores] == [1]
    assert {each.document_id: each.reason for each in heard.unjudged} == dict.fromkeys(
        (2, 3, 4), "Judge 2 (two) failed: Spent."
    )


async def test_what_is_not_judged_by_the_deadline_is_named_and_the_rest_is_stored(
    engine: Engine, namespace: str
) -> None:
    query_id = await golden(engine, namespace)

    class Hanging(Provider):
        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            if "Text 2" in prompt.user:
                await asyncio.Event().wait()
            return await Provider.write(self, prompt, seconds, schema)

    told: list[tuple[int, int]] = []

    async def progress(done: int, total: int) -> None:
        told.append((done, total))

    bench = court(engine, Hanging("one", scoring(*[0.9] * 4)), Provider("two", scoring(*[0.9] * 4)), seconds=1.0)
    heard = await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS[:2], progress)
    assert [score.document_id for score in heard.judgement.evaluation.scores] == [1]
    ((late, reason),) = [(each.document_id, each.reason) for each in heard.unjudged]
    assert late == 2
    assert re.search(r"within (the )?1 s", reason)
    assert told[0] == (1, 2)
    assert reservations(heard) == [
        "1 of 2 documents could not be judged and are excluded.",
        "Kappa of one document is not meaningful: judge several.",
    ]


async def test_a_defect_is_not_taken_for_a_failure_of_a_judge(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)

    class Defective(Provider):
        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await court(engine, Defective("one", scoring()), Provider("two", scoring(0.9))).evaluate(
            namespace, query_id, QUERY, DOCUMENTS[:1]
        )


async def test_when_one_judge_fails_the_other_is_called_off(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    cancelled: list[str] = []

    class Endless(Provider):
        async def write(self, prompt: Prompt, seconds: float, schema: dict[str, Any] | None = None) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(prompt.user)
                raise
            raise AssertionError

    other = Provider("two", failing(Unavailable("Down.")))
    with pytest.raises(JudgeFailed, match="Judge 2"):
        await court(engine, Endless("one", scoring()), other).evaluate(namespace, query_id, QUERY, DOCUMENTS[:2])
    assert len(cancelled) == 2
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize(
    "answer",
    [
        "0.9",
        "I would say it is quite relevant.",
        '{"reason": "Fine.", "score": "0.9"}',
        '{"reason": "Fine.", "score": 1.01}',
        '{"reason": "Fine.", "score": -0.1}',
        '{"reason": "Fine.", "score": NaN}',
        '{"reason": "Fine.", "score": true}',
        '{"reason": "Fine.", "score": null}',
        '{"score": 0.9}',
        '{"reason": "Fine.", "score": 0.9, "confidence": 1}',
        "[]",
        "",
    ],
)
async def test_an_answer_that_is_not_a_verdict_is_never_taken_for_one(
    engine: Engine, namespace: str, answer: str
) -> None:
    query_id = await golden(engine, namespace)
    gpt, claude = Provider("one", scoring(0.9)), Provider("two", lambda user: answer)
    with pytest.raises(JudgeFailed, match=r"Judge 2 \(two\) failed"):
        await court(engine, gpt, claude).evaluate(namespace, query_id, QUERY, DOCUMENTS[:1])
    assert await stored(engine, namespace) == 0


async def test_both_judges_are_asked_for_the_most_repeatable_answer(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    judges = [Provider(name, scoring(0.9)) for name in ("one", "two")]
    await court(engine, *judges).evaluate(namespace, query_id, QUERY, DOCUMENTS[:1])
    assert [prompt.temperature for judge in judges for prompt in judge.asked] == [0.0, 0.0]


async def test_a_judge_who_thinks_better_of_the_form_is_heard(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    answers = iter(["Quite relevant.", '{"reason": "Better so.", "score": 1}'])
    gpt, claude = Provider("one", scoring(0.9)), Provider("two", lambda user: next(answers))
    heard = await court(engine, gpt, claude).evaluate(namespace, query_id, QUERY, DOCUMENTS[:1])
    judgement = heard.judgement
    assert (judgement.evaluation.judge2_score, judgement.evaluation.kappa) == (1.0, 1.0)


async def test_a_reason_that_cannot_be_stored_as_it_is_costs_no_score(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    odd = json.dumps({"reason": "a\x00b" + "c" * 5000, "score": 0.5})
    bench = court(engine, Provider("one", scoring(0.9)), Provider("two", lambda user: odd))
    await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS[:1])
    ((score,),) = [judgement.evaluation.scores for judgement in await bench.judgements(namespace, query_id)]
    assert score.judge2_score == 0.5
    assert score.judge2_reason.startswith("abccc")
    assert len(score.judge2_reason) == 2000


async def test_without_keys_it_says_which_is_missing_before_anything_else(engine: Engine, namespace: str) -> None:
    one = Provider("one", scoring(1.0))
    for gpt, claude, named in (
        (None, None, "neither an OpenAI nor an Anthropic API key"),
        (None, one, "Judge 1 is a language model, and no OpenAI API key"),
        (one, None, "Judge 2 is a language model, and no Anthropic API key"),
    ):
        with pytest.raises(ApiKeyMissing, match=named):
            await court(engine, gpt, claude).evaluate(namespace, 42, "", [])
    assert one.asked == []


@pytest.mark.parametrize(
    ("query", "documents", "sentence"),
    [
        (" ", DOCUMENTS, "query is empty"),
        (QUERY, [], "the number of docs must be between 1 and 50, not 0"),
        (QUERY, [Document(n, "text") for n in range(51)], "the number of docs must be between 1 and 50, not 51"),
        (QUERY, [Document(1, "a"), Document(1, "b")], "docs has the id 1 twice"),
        (QUERY, [Document(2**63, "text")], r"docs\[0\].id must be between"),
        (QUERY, [Document(1, "a"), Document(2, " ")], r"docs\[1\].content is empty"),
        (QUERY, [Document(1, "x" * 20_001)], r"docs\[0\].content is longer than the limit of 20,000 characters"),
    ],
)
async def test_bad_input_is_refused_before_a_model_is_asked(
    engine: Engine, namespace: str, query: str, documents: Sequence[Document], sentence: str
) -> None:
    query_id = await golden(engine, namespace)
    judges = [Provider(name, scoring(*[1.0] * 4)) for name in ("one", "two")]
    with pytest.raises(Invalid, match=sentence):
        await court(engine, *judges).evaluate(namespace, query_id, query, documents)
    assert not judges[0].asked + judges[1].asked


@pytest.mark.parametrize("query_id", [0, -1, 2**63, 123_456_789])
async def test_a_query_that_is_not_in_the_golden_set_is_not_judged(
    engine: Engine, namespace: str, query_id: int
) -> None:
    judges = [Provider(name, scoring(*[1.0] * 4)) for name in ("one", "two")]
    bench = court(engine, *judges)
    with pytest.raises(NotFound, match=f"query_id {query_id} is not in the golden set"):
        await bench.evaluate(namespace, query_id, QUERY, DOCUMENTS)
    with pytest.raises(NotFound, match=f"query_id {query_id} is not in the golden set"):
        await bench.judgements(namespace, query_id)
    assert not judges[0].asked + judges[1].asked


async def test_what_judges_said_goes_with_the_query_it_was_about(engine: Engine, namespace: str) -> None:
    query_id = await golden(engine, namespace)
    judges = [Provider(name, scoring(*[1.0] * 4)) for name in ("one", "two")]
    await court(engine, *judges).evaluate(namespace, query_id, QUERY, DOCUMENTS)
    assert await stored(engine, namespace) == 1 + len(DOCUMENTS)
    await engine.golden_test.remove(namespace, query_id)
    assert await stored(engine, namespace) == 0
