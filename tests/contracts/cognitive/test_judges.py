"""Contract cognitive-memory-mcp: the two judges and the golden test, by a real client of a real server."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import jsonschema  # type: ignore[import-untyped]  # comes with the SDK, without types
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from pydantic import SecretStr

from recollect.doors.mcp.server import RecollectServer
from recollect.engine import Engine
from recollect.flows.cognitive.golden_test import Entry
from recollect.settings import Settings
from tests.commands import RECOLLECT
from tests.flows.test_hybrid_search import fill
from tests.llm_servers import Asked, Failure, ProviderServer, Reply, provider_server
from tests.mcp_servers import connected, environment, over_stdio, text_of

QUERY = "How does working memory relate to consciousness?"
REFUSED_KEY = "sk-refused"


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


def verdict(asked: Asked) -> Reply:
    """Both judges score as the document tells them: `gpt=0.9 claude=0.8`."""
    judge = "claude" if asked.path == "/v1/messages" else "gpt"
    (score,) = re.findall(rf"{judge}=(\S+)", asked.body["messages"][-1]["content"])
    return Reply(f'{{"reason": "As it says.", "score": {score}}}')


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with provider_server() as server:
        server.answer = verdict
        yield server


@asynccontextmanager
async def judged_by(provider: ProviderServer, settings: Settings, **changes: str) -> AsyncIterator[Client]:
    """A client of a server in this process, whose judges are at the test's own provider."""
    engine = await Engine.open(provider.configure(settings, **changes))
    try:
        async with Client(RecollectServer(engine)) as client:
            yield client
    finally:
        await engine.close()


async def refusal(client: Client, query_id: int, content: str) -> dict[str, str]:
    arguments = {"query_id": query_id, "query": QUERY, "docs": [{"id": 123, "content": content}]}
    result = await client.call_tool("store_dual_judge_scores", arguments)
    assert result.is_error
    problem: dict[str, str] = json.loads(text_of(result))
    assert problem["tool"] == "store_dual_judge_scores"
    return problem


async def golden_query(engine: Engine, namespace: str) -> int:
    (added,) = await engine.golden_test.add(namespace, [Entry(QUERY)])
    return added.id


async def judged(engine: Engine, namespace: str, query_id: int) -> list[tuple[int, float, float]]:
    return [
        (score.document_id, score.judge1_score, score.judge2_score)
        for judgement in await engine.judges.judgements(namespace, query_id)
        for score in judgement.evaluation.scores
    ]


async def test_two_judges_answer_as_in_the_example_and_every_score_is_stored(
    engine: Engine, namespace: str, provider: ProviderServer, tmp_path: Path
) -> None:
    query_id = await golden_query(engine, namespace)
    docs = [
        {"id": 123, "content": "Document content text, gpt=0.9 claude=1.0"},
        {"id": 124, "content": "Another, gpt=0.2 claude=0.4"},
    ]
    chosen = environment(namespace) | provider.environment()
    parameters = StdioServerParameters(command=str(RECOLLECT), args=["mcp"], env=chosen)
    with (tmp_path / "log").open("w") as log, connected(stdio_client(parameters, log), namespace) as mcp:
        answer = mcp.ok("store_dual_judge_scores", query_id=query_id, query=QUERY, docs=docs)
        unknown = json.loads(mcp.refused("store_dual_judge_scores", query_id=query_id + 1, query=QUERY, docs=docs))
    assert list(answer.items()) == [
        ("query_id", query_id),
        ("judge1_score", 0.55),
        ("judge2_score", 0.7),
        ("kappa", 1.0),
        ("agreement", "almost perfect"),
        ("evaluated_documents", 2),
        ("status", "success"),
    ]
    assert await judged(engine, namespace, query_id) == [(123, 0.9, 1.0), (124, 0.2, 0.4)]
    (judgement,) = await engine.judges.judgements(namespace, query_id)
    assert judgement.evaluation.judge1_model == "openai:gpt-4o"
    assert judgement.evaluation.judge2_model == f"anthropic:{engine.settings.judge_anthropic_model}"
    assert unknown["error"] == "Resource not found"
    assert f"query_id {query_id + 1} is not in the golden set" in unknown["details"]
    spent = {(line.feature, line.model): line.input_tokens for line in await engine.spending.lines(namespace, 1)}
    assert spent == {("judges", "openai:gpt-4o"): 40, ("judges", judgement.evaluation.judge2_model): 40}
    by_path = {asked.path: asked.body.get("temperature") for asked in provider.requests}
    assert by_path == {"/v1/chat/completions": 0.0, "/v1/messages": 0.0}


async def test_a_document_that_fails_is_named_and_the_others_are_stored_with_progress_on_the_way(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    query_id = await golden_query(engine, namespace)
    docs = [
        {"id": 1, "content": "gpt=0.9 claude=0.8", "source_ids": [7], "score": 0.847},
        {"id": 2, "content": "gpt=0.9 claude=1.5"},
        {"id": 3, "content": "gpt=0.1 claude=0.2"},
    ]
    told: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with judged_by(provider, settings) as client:
        arguments = {"query_id": query_id, "query": QUERY, "docs": docs}
        result = await client.call_tool("store_dual_judge_scores", arguments, progress_callback=on_progress)
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}["store_dual_judge_scores"]
    answer = json.loads(text_of(result))
    jsonschema.validate(answer, listed.output_schema)
    (failed,) = answer.pop("failed_documents")
    assert answer == {
        "query_id": query_id,
        "judge1_score": 0.5,
        "judge2_score": 0.5,
        "kappa": 1.0,
        "agreement": "almost perfect",
        "evaluated_documents": 2,
        "status": "degraded",
        "details": "1 of 3 documents could not be judged and are excluded.",
    }
    assert failed["id"] == 2
    assert failed["details"].startswith(f"Judge 2 (anthropic:{settings.judge_anthropic_model}) failed: ")
    assert await judged(engine, namespace, query_id) == [(1, 0.9, 0.8), (3, 0.1, 0.2)]
    assert told[-1] == (3, 3)
    assert told == sorted(set(told))


async def test_kappa_of_one_document_is_flagged(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    query_id = await golden_query(engine, namespace)
    async with judged_by(provider, settings) as client:
        arguments = {"query_id": query_id, "query": QUERY, "docs": [{"id": 1, "content": "gpt=0.9 claude=0.8"}]}
        answer = json.loads(text_of(await client.call_tool("store_dual_judge_scores", arguments)))
    assert (answer["kappa"], answer["status"]) == (1.0, "success")
    assert answer["details"] == "Kappa of one document is not meaningful: judge several."


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(404, message="model: claude-haiku-9"), r"\(404\): model: claude-haiku-9$"),
        (Failure(400, message="credit balance is too low"), r"refused the request \(400\): credit balance is too low$"),
    ],
)
async def test_what_a_provider_says_of_a_request_is_told_and_no_key_is_blamed(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings, failure: Failure, said: str
) -> None:
    query_id = await golden_query(engine, namespace)
    provider.answer = lambda asked: failure if asked.path == "/v1/messages" else verdict(asked)
    async with judged_by(provider, settings) as client:
        problem = await refusal(client, query_id, "gpt=0.9 claude=1.0")
    assert problem["error"] == "Tool execution failed"
    assert re.search(said, problem["details"])
    assert "key" not in problem["details"]


async def test_a_judge_that_gives_no_usable_score_fails_the_call_and_nothing_is_stored(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    query_id = await golden_query(engine, namespace)
    async with judged_by(provider, settings) as client:
        problem = await refusal(client, query_id, "Document content text, gpt=0.9 claude=1.5")
    assert problem["error"] == "Tool execution failed"
    assert problem["details"].startswith(f"Nothing was stored: Judge 2 (anthropic:{settings.judge_anthropic_model})")
    assert await judged(engine, namespace, query_id) == []


async def test_a_spent_budget_is_told_as_it_is_and_nobody_is_asked(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    query_id = await golden_query(engine, namespace)
    async with judged_by(provider, settings, llm_daily_tokens="10") as client:
        problem = await refusal(client, query_id, "Document content text, gpt=0.9 claude=1.0")
    assert problem["error"] == "Tool execution failed"
    assert "RECOLLECT_LLM_DAILY_TOKENS" in problem["details"]
    assert provider.requests == []


async def test_a_judge_whose_key_is_refused_or_missing_is_named_and_the_key_is_not_shown(
    engine: Engine, namespace: str, provider: ProviderServer, settings: Settings
) -> None:
    query_id = await golden_query(engine, namespace)
    content = "Document content text, gpt=0.9 claude=1.0"
    async with judged_by(provider, settings, anthropic_api_key=REFUSED_KEY) as client:
        refused = await refusal(client, query_id, content)
    without = settings.model_copy(update={"openai_api_key": SecretStr("sk-only-one")})
    engine_without = await Engine.open(without)
    async with Client(RecollectServer(engine_without)) as client:
        missing = await refusal(client, query_id, content)
    await engine_without.close()
    assert refused["error"] == missing["error"] == "API key not configured"
    judge = f"Judge 2 (anthropic:{settings.judge_anthropic_model})"
    assert refused["details"].startswith(f"Nothing was stored: {judge} failed: Anthropic rejected the API key (401)")
    assert REFUSED_KEY not in refused["details"]
    assert missing["details"] == (
        "Judge 2 is a language model, and no Anthropic API key is configured. Set RECOLLECT_ANTHROPIC_API_KEY."
    )
    assert await judged(engine, namespace, query_id) == []


async def test_the_golden_test_answers_as_in_the_example(engine: Engine, namespace: str, tmp_path: Path) -> None:
    stored = await fill(engine, namespace)
    await engine.golden_test.add(
        namespace,
        [
            Entry("train to Lisbon", stored[3:]),
            Entry("What did the doctor say that I should do more often?", stored[:2]),
            Entry("green tea", stored[:3]),
        ],
    )
    with (tmp_path / "log").open("w") as log, over_stdio(namespace, log) as mcp:
        answer = mcp.ok("get_golden_test_results")
        assert list(answer.items()) == [
            ("date", datetime.now(UTC).date().isoformat()),
            ("precision_at_5", 0.4),
            ("baseline_precision", 0.4),
            ("drift_detected", False),
            ("queries_tested", 3),
            ("details", "All metrics within normal range"),
            (
                "query_breakdown",
                {
                    "short": {"count": 2, "precision_at_5": 0.4},
                    "medium": {"count": 1, "precision_at_5": 0.4},
                    "long": {"count": 0, "precision_at_5": None},
                },
            ),
        ]
        mcp.ok("forget", id=f"insight:{stored[0]}")
        drifted = mcp.ok("get_golden_test_results")
    assert drifted["drift_detected"] is True
    assert (drifted["precision_at_5"], drifted["baseline_precision"]) == (0.2667, 0.4)
    assert "below the baseline of 0.400" in drifted["details"]
