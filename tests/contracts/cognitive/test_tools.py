"""Contract cognitive-memory-mcp: dialogue, insights, search, working memory and episodes, as the examples call them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect import MemoryManager, Settings
from tests.mcp_servers import McpClient, environment


def say(mcp: McpClient, content: str, **more: Any) -> dict[str, Any]:
    said: dict[str, Any] = mcp.ok(
        "store_raw_dialogue", **({"session_id": "s", "speaker": "user", "content": content} | more)
    )
    return said


def insight(mcp: McpClient, content: str) -> dict[str, Any]:
    source = say(mcp, content)
    stored: dict[str, Any] = mcp.ok("compress_to_l2_insight", content=content, source_ids=[source["id"]])
    return stored


def recalled(mcp: McpClient, word: str) -> list[dict[str, Any]]:
    """The memories of this test: by meaning, recall also brings what others stored."""
    return [memory for memory in mcp.ok("recall", query=word, top_k=100)["memories"] if word in memory["text"]]


def is_recent(moment: str) -> bool:
    assert moment.endswith("Z")
    return abs(datetime.fromisoformat(moment) - datetime.now(UTC)) < timedelta(minutes=5)


def test_ping(mcp: McpClient) -> None:
    answer = mcp.ok("ping")
    assert is_recent(answer.pop("timestamp"))
    assert answer == {"response": "pong", "tool": "ping", "status": "ok"}


def test_dialogue_is_stored_as_in_the_example(mcp: McpClient) -> None:
    answer = mcp.ok(
        "store_raw_dialogue",
        session_id="conversation-2025-01-15",
        speaker="user",
        content="What is consciousness and how does it relate to memory?",
        metadata={"context": "philosophical discussion"},
    )
    assert list(answer) == ["id", "timestamp", "session_id", "status"]
    assert isinstance(answer["id"], int)
    assert is_recent(answer["timestamp"])
    assert (answer["session_id"], answer["status"]) == ("conversation-2025-01-15", "success")


def test_an_insight_says_how_dense_it_is(mcp: McpClient) -> None:
    answer = insight(mcp, "Working memory holds about seven items and decays within seconds without rehearsal.")
    assert list(answer) == ["id", "embedding_status", "fidelity_score", "timestamp"]
    assert isinstance(answer["id"], int)
    assert answer["embedding_status"] == "success"
    assert 0.0 <= answer["fidelity_score"] <= 1.0
    assert is_recent(answer["timestamp"])


def test_a_search_returns_the_fields_and_the_score_of_the_contract(mcp: McpClient, word: str) -> None:
    source = say(mcp, f"Octopuses taste with their arms. {word}")
    stored = mcp.ok(
        "compress_to_l2_insight", content=f"An octopus tastes with its arms {word}", source_ids=[source["id"]]
    )
    answer = mcp.ok("hybrid_search", query_text=f"octopus arms {word}", top_k=3)
    assert list(answer) == [
        "results",
        "query_embedding_dimension",
        "semantic_results_count",
        "keyword_results_count",
        "final_results_count",
        "weights",
        "status",
    ]
    best = answer["results"][0]
    assert list(best) == ["id", "content", "source_ids", "score"]
    assert (best["id"], best["source_ids"], best["score"]) == (stored["id"], [source["id"]], 1.0)
    assert answer["query_embedding_dimension"] == 1536
    assert answer["final_results_count"] == len(answer["results"]) <= 3
    assert answer["semantic_results_count"] >= answer["final_results_count"]
    assert answer["keyword_results_count"] >= 1
    assert (answer["weights"], answer["status"]) == ({"semantic": 0.7, "keyword": 0.3}, "success")


def test_weights_decide_what_counts(mcp: McpClient, word: str) -> None:
    stored = insight(mcp, f"Nothing but a rare word: {word}")
    answer = mcp.ok("hybrid_search", query_text=word, weights={"semantic": 0.0, "keyword": 1.0})
    assert [found["id"] for found in answer["results"]] == [stored["id"]]
    assert answer["weights"] == {"semantic": 0.0, "keyword": 1.0}


def test_a_query_embedding_is_taken_in_our_own_space(mcp: McpClient, word: str) -> None:
    stored = insight(mcp, f"Whatever is found by {word}")
    vector = [0.05] * 384 + [0.0] * (1536 - 384)
    answer = mcp.ok("hybrid_search", query_text=word, query_embedding=vector)
    assert stored["id"] in [found["id"] for found in answer["results"]]


def test_an_object_may_come_as_json_in_a_text(mcp: McpClient, word: str) -> None:
    stored = insight(mcp, f"Some clients write objects as text: {word}")
    answer = mcp.ok("hybrid_search", query_text=word, weights='{"semantic": 0.0, "keyword": 1.0}')
    assert [found["id"] for found in answer["results"]] == [stored["id"]]


def test_an_episode_is_stored_as_in_the_example(mcp: McpClient) -> None:
    query = "How does working memory relate to consciousness?"
    answer = mcp.ok("store_episode", query=query, reward=0.8, reflection="Problem: ... Lesson: ...")
    assert list(answer) == ["id", "embedding_status", "query", "reward", "created_at"]
    assert isinstance(answer["id"], int)
    assert (answer["embedding_status"], answer["query"], answer["reward"]) == ("success", query, 0.8)
    assert is_recent(answer["created_at"])


def test_working_memory_makes_room_when_it_is_full(mcp: McpClient, word: str) -> None:
    answers = [mcp.ok("update_working_memory", content=f"item {number} {word}") for number in range(11)]
    last = mcp.ok("update_working_memory", content=f"one more {word}")
    assert list(last) == ["added_id", "evicted_id", "archived_id", "status"]
    assert last["evicted_id"] == answers[1]["added_id"]
    assert isinstance(last["archived_id"], int)
    items = mcp.read("memory://working-memory")["contents"]
    assert len(items) == 10
    assert items[0]["id"] == last["added_id"]


def test_working_memory_that_is_not_full_evicts_nothing(mcp: McpClient, word: str) -> None:
    content = f"the same again {word}"
    first = mcp.ok("update_working_memory", content=content)
    again = mcp.ok("update_working_memory", content=content)
    assert again == {"added_id": first["added_id"], "evicted_id": None, "archived_id": None, "status": "success"}


def test_judges_without_keys_say_so(mcp: McpClient) -> None:
    text = mcp.refused("store_dual_judge_scores", query_id=42, query="memory", docs=[{"id": 123, "content": "text"}])
    problem = json.loads(text)
    assert (problem["error"], problem["tool"]) == ("API key not configured", "store_dual_judge_scores")


def test_an_empty_golden_set_is_an_error_and_no_figure(mcp: McpClient) -> None:
    problem = json.loads(mcp.refused("get_golden_test_results"))
    assert problem["tool"] == "get_golden_test_results"
    assert "golden test set is empty" in problem["details"]


async def test_the_library_reads_what_the_tools_wrote(
    mcp: McpClient, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = uuid4()
    said = say(mcp, f"I keep bees. {word}", session_id=str(session), metadata={"mood": "calm"})
    stored = mcp.ok("compress_to_l2_insight", content=f"Keeps bees {word}", source_ids=[said["id"]])
    episode = mcp.ok("store_episode", query=f"Who keeps bees? {word}", reward=1.0, reflection="Lesson: ask.")
    for name, value in environment(mcp.namespace).items():
        monkeypatch.setenv(name, value)
    async with MemoryManager(Settings()) as memory:
        (message,) = await memory.get_conversation_history(session)
        assert (message.content, message.metadata_) == (f"I keep bees. {word}", {"mood": "calm"})
        found = await memory.recall(word, top_k=10)
    kinds = {item.kind: item.id for item in found.memories if word in item.text}
    assert kinds == {"message": str(message.id), "insight": str(stored["id"]), "episode": str(episode["id"])}


async def test_a_library_message_is_a_source_for_an_insight(
    mcp: McpClient, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(mcp.namespace).items():
        monkeypatch.setenv(name, value)
    session = uuid4()
    async with MemoryManager(Settings()) as memory:
        await memory.store_message(session, "assistant", f"Bees dance. {word}")
    (raw,) = mcp.read(f"memory://l0-raw?session_id={session}")["contents"]
    assert (raw["speaker"], raw["content"]) == ("assistant", f"Bees dance. {word}")
    assert mcp.ok("compress_to_l2_insight", content="Bees dance", source_ids=[raw["id"]])["embedding_status"]


def test_core_remembers_recalls_and_forgets(mcp: McpClient, word: str) -> None:
    stored = mcp.ok("remember", text=f"The spare key is under the {word}.", metadata={"room": "hall"})
    assert UUID(stored["id"].removeprefix("document:"))
    found = mcp.ok("recall", query=f"Where is the key? {word}", top_k=5)
    assert list(found) == ["memories", "answered", "pending", "degraded"]
    best = found["memories"][0]
    fields = ["id", "text", "score", "relevance", "at", "speaker", "trust", "session_id", "metadata", "repeats"]
    fields.append("explanation")
    assert list(best) == fields
    assert best["metadata"] == {"room": "hall"}
    assert (best["id"], best["speaker"], best["session_id"]) == (stored["id"], None, None)
    assert is_recent(best["at"])
    rows = {"documents": 1, "passages": 1}
    receipt = {"id": stored["id"], "rows": rows, "insights_left": [], "twins_left": []}
    assert mcp.ok("forget", id=best["id"]) == receipt
    assert recalled(mcp, word) == []
    assert mcp.refused("forget", id=stored["id"]).startswith("Error: No item has the id")


def test_recall_finds_every_kind_and_each_can_be_forgotten(mcp: McpClient, word: str) -> None:
    said = say(mcp, f"Said {word}")
    mcp.ok("compress_to_l2_insight", content=f"Condensed {word}", source_ids=[said["id"]])
    mcp.ok("store_episode", query=f"Asked {word}", reward=0.0, reflection="Lesson: none.")
    mcp.ok("remember", text=f"Written {word}")
    memories = recalled(mcp, word)
    assert {memory["id"].partition(":")[0] for memory in memories} == {"message", "insight", "episode", "document"}
    # An insight goes with the last message it was made from, so it is forgotten before that.
    for memory_id in sorted(memory["id"] for memory in memories):
        assert mcp.ok("forget", id=memory_id)["rows"]["passages"] == 1
    assert recalled(mcp, word) == []
