"""Contract cognitive-memory-mcp: the five resources, with every parameter."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.mcp_servers import ONE_TRANSPORT, McpClient


def days() -> dict[str, date]:
    today = datetime.now(UTC).date()
    return {"today": today, "yesterday": today - timedelta(days=1), "tomorrow": today + timedelta(days=1)}


def contents(mcp: McpClient, uri: str) -> list[dict[str, Any]]:
    envelope = mcp.read(uri)
    assert list(envelope) == ["resource", "uri", "mimeType", "contents"]
    assert (envelope["resource"], envelope["uri"]) == (uri.partition("?")[0], uri)
    assert envelope["mimeType"] == "application/json"
    found: list[dict[str, Any]] = envelope["contents"]
    return found


def dialogue(mcp: McpClient, session: str, *lines: tuple[str, str]) -> list[int]:
    return [
        mcp.ok("store_raw_dialogue", session_id=session, speaker=speaker, content=content)["id"]
        for speaker, content in lines
    ]


@pytest.fixture
def insight(mcp: McpClient, word: str) -> dict[str, Any]:
    sources = dialogue(mcp, word, ("user", f"The {word} gate opens at nine."), ("assistant", "Noted."))
    stored: dict[str, Any] = mcp.ok(
        "compress_to_l2_insight", content=f"The {word} gate opens at nine", source_ids=sources
    )
    return stored | {"source_ids": sources}


def test_an_insight_is_listed_with_the_contracts_fields(mcp: McpClient, word: str, insight: dict[str, Any]) -> None:
    (found,) = [each for each in contents(mcp, "memory://l2-insights") if each["id"] == insight["id"]]
    assert list(found) == ["id", "content", "fidelity_score", "created_at", "source_ids", "metadata"]
    assert (found["content"], found["source_ids"]) == (f"The {word} gate opens at nine", insight["source_ids"])
    assert found["fidelity_score"] == insight["fidelity_score"]
    assert found["created_at"] == insight["timestamp"]
    assert found["metadata"]["fidelity_warning"] is (insight["fidelity_score"] < 0.5)
    assert 0.0 <= found["metadata"]["grounding"] <= 1.0


@pytest.mark.parametrize("encode", [quote, quote_plus])
def test_a_query_is_natural_text_however_it_is_encoded(
    mcp: McpClient, word: str, insight: dict[str, Any], encode: Any
) -> None:
    query = f"/when does the {word} gate open? ../ a+b & c=d 100% ünï C:\\x"
    # Another test's insight may be as near in meaning, and the rare word decides only between the first ones.
    found = contents(mcp, f"memory://l2-insights?query={encode(query)}&top_k=2")
    assert insight["id"] in [each["id"] for each in found]


@ONE_TRANSPORT
@pytest.mark.parametrize("query", ["the {} gate", "C# {}", "/{}", "..{}", "{}: what?"])
def test_a_query_need_not_be_encoded(mcp: McpClient, word: str, insight: dict[str, Any], query: str) -> None:
    found = contents(mcp, f"memory://l2-insights?query={query.format(word)}&top_k=2")
    assert insight["id"] in [each["id"] for each in found]


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("parameters", "is_there"),
    [
        ("created_after={yesterday}", True),
        ("created_after={today}&created_before={today}", True),
        ("created_after={tomorrow}", False),
        ("created_before={yesterday}", False),
        ("created_before={tomorrow}&fidelity_min=0.0", True),
        ("fidelity_min=1.0", False),
    ],
)
def test_insights_are_filtered(
    mcp: McpClient, word: str, insight: dict[str, Any], parameters: str, is_there: bool
) -> None:
    for query in ("", f"query={word}&"):
        found = contents(mcp, f"memory://l2-insights?{query}{parameters.format_map(days())}")
        assert (insight["id"] in [each["id"] for each in found]) is is_there


def test_top_k_limits_insights(mcp: McpClient, insight: dict[str, Any]) -> None:
    assert [each["id"] for each in contents(mcp, "memory://l2-insights?top_k=1")] == [insight["id"]]


def test_working_memory_has_the_last_accessed_first(mcp: McpClient, word: str) -> None:
    first, second = (mcp.ok("update_working_memory", content=f"{n} {word}", importance=0.7) for n in (1, 2))
    mcp.ok("update_working_memory", content=f"1 {word}", importance=0.7)
    found = contents(mcp, "memory://working-memory")
    assert [each["id"] for each in found[:2]] == [first["added_id"], second["added_id"]]
    assert list(found[0]) == ["id", "content", "importance", "last_accessed", "created_at"]
    assert (found[0]["content"], found[0]["importance"]) == (f"1 {word}", 0.7)
    assert found[0]["last_accessed"] > found[0]["created_at"]
    assert found[0]["last_accessed"].endswith("Z")


def test_evicted_items_are_archived(mcp: McpClient, word: str) -> None:
    answers = [mcp.ok("update_working_memory", content=f"item {number} {word}", importance=0.6) for number in range(12)]
    archived = {answer["archived_id"] for answer in answers} - {None}
    found = {each["id"]: each for each in contents(mcp, "memory://stale-memory?reason=LRU_EVICTION&days_back=7")}
    assert archived <= found.keys()
    newest = found[answers[-1]["archived_id"]]
    assert list(newest) == ["id", "original_content", "importance", "reason", "archived_at"]
    assert (newest["original_content"], newest["reason"]) == (f"item 1 {word}", "LRU_EVICTION")
    assert list(found) == sorted(found, reverse=True)
    by_hand = contents(mcp, "memory://stale-memory?reason=MANUAL_ARCHIVE")
    assert not any(word in each["original_content"] for each in by_hand)
    assert newest["id"] not in [each["id"] for each in contents(mcp, "memory://stale-memory?importance_min=0.61")]
    assert len(contents(mcp, "memory://stale-memory?limit=1&importance_min=0.6")) == 1


def test_episodes_are_found_by_a_similar_query(mcp: McpClient, word: str) -> None:
    stored = mcp.ok(
        "store_episode",
        query=f"How does memory consistency work in {word}?",
        reward=0.8,
        reflection="Problem: asked about consistency. Lesson: explain coherence.",
    )
    ask = f"memory://episode-memory?query=memory+consistency+{word}&top_k=3"
    (found, *_) = contents(mcp, ask)
    assert list(found) == ["id", "query", "reward", "reflection", "similarity", "created_at"]
    assert (found["id"], found["reward"]) == (stored["id"], 0.8)
    assert found["reflection"] == "Problem: asked about consistency. Lesson: explain coherence."
    assert 0.5 <= found["similarity"] <= 1.0
    assert found["created_at"] == stored["created_at"]
    assert stored["id"] not in [each["id"] for each in contents(mcp, f"{ask}&reward_min=0.9")]
    assert stored["id"] in [each["id"] for each in contents(mcp, f"{ask}&reward_min=0.8&days_back=1")]
    assert contents(mcp, f"{ask}&min_similarity=1.0") == []


def test_raw_dialogue_is_read_by_session_speaker_and_order(mcp: McpClient, word: str) -> None:
    ids = dialogue(mcp, word, ("user", "one"), ("Ann Lee", "two"), ("user", "three"))
    found = contents(mcp, f"memory://l0-raw?session_id={word}&limit=50")
    assert [each["id"] for each in found] == ids[::-1]
    assert list(found[0]) == ["id", "session_id", "speaker", "content", "timestamp", "metadata"]
    assert (found[0]["session_id"], found[0]["speaker"], found[0]["content"]) == (word, "user", "three")
    oldest_first = contents(mcp, f"memory://l0-raw?session_id={word}&order=asc&limit=2")
    assert [each["id"] for each in oldest_first] == ids[:2]
    for speaker in ("Ann+Lee", "Ann%20Lee"):
        of_one = contents(mcp, f"memory://l0-raw?session_id={word}&speaker={speaker}")
        assert [each["id"] for each in of_one] == ids[1:2]


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("start", "end", "is_there"),
    [
        ("today", "today", True),
        ("yesterday", "tomorrow", True),
        ("tomorrow", "tomorrow", False),
        ("yesterday", "yesterday", False),
    ],
)
def test_both_ends_of_a_date_range_belong_to_it(
    mcp: McpClient, word: str, start: str, end: str, is_there: bool
) -> None:
    dialogue(mcp, word, ("user", "today"))
    for comma in (",", "%2C"):
        found = contents(mcp, f"memory://l0-raw?session_id={word}&date_range={days()[start]}{comma}{days()[end]}")
        assert bool(found) is is_there


def test_metadata_of_dialogue_comes_back(mcp: McpClient, word: str) -> None:
    mcp.ok("store_raw_dialogue", session_id=word, speaker="user", content="x", metadata={"context": "philosophical"})
    (found,) = contents(mcp, f"memory://l0-raw?session_id={word}")
    assert found["metadata"] == {"context": "philosophical"}


def test_a_resource_is_read_afresh_each_time(mcp: McpClient, word: str) -> None:
    uri = f"memory://l0-raw?session_id={word}"
    assert contents(mcp, uri) == []
    dialogue(mcp, word, ("user", "now"))
    assert len(contents(mcp, uri)) == 1


@ONE_TRANSPORT
@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("memory://l2-insights?top_k=0", "top_k must be between 1 and 1000, not 0"),
        ("memory://l2-insights?top_k=1001", "top_k"),
        ("memory://l2-insights?top_k=ten", "top_k"),
        ("memory://l2-insights?top_k=", "top_k"),
        ("memory://l2-insights?top_k=1&top_k=2", "top_k is given more than once"),
        ("memory://l2-insights?query=", "query is empty"),
        ("memory://l2-insights?query=%FF", "query is not valid UTF-8"),
        ("memory://l2-insights?query=%00", "query contains a NUL"),
        ("memory://l2-insights?query=?!", "query has no letters"),
        ("memory://l2-insights?fidelity_min=1.1", "fidelity_min must be between 0.0 and 1.0"),
        ("memory://l2-insights?fidelity_min=nan", "fidelity_min must be a finite number"),
        ("memory://l2-insights?fidelity_min=high", "fidelity_min"),
        ("memory://l2-insights?created_after=yesterday", "created_after must be a date"),
        ("memory://l2-insights?created_before=1700000000", "created_before must be a date"),
        ("memory://l2-insights?created_after=2025-02-02&created_before=2025-02-01", "created_before"),
        ("memory://l2-insights?limit=5", "unknown parameter limit"),
        ("memory://l2-insights?=5", "unknown parameter"),
        ("memory://working-memory?limit=5", "unknown parameter limit"),
        ("memory://episode-memory", "query is required"),
        ("memory://episode-memory?top_k=3", "query is required"),
        ("memory://episode-memory?query=x&top_k=101", "top_k must be between 1 and 100"),
        ("memory://episode-memory?query=x&min_similarity=-0.1", "min_similarity must be between 0.0 and 1.0"),
        ("memory://episode-memory?query=x&reward_min=2", "reward_min must be between -1.0 and 1.0"),
        ("memory://episode-memory?query=x&days_back=0", "days_back"),
        ("memory://episode-memory?query=x&days_back=99999999999999999999", "days_back"),
        ("memory://l0-raw?limit=-1", "limit must be between 1 and 1000, not -1"),
        ("memory://l0-raw?order=random", "order must be 'asc' or 'desc'"),
        ("memory://l0-raw?date_range=2025-01-10", "date_range must be two dates"),
        ("memory://l0-raw?date_range=2025-01-10,2025-13-01", "date_range must be a date"),
        ("memory://l0-raw?date_range=2025-01-15,2025-01-10", "date_range ends before it starts"),
        ("memory://l0-raw?session_id=", "session_id is empty"),
        ("memory://l0-raw?speaker=%20", "speaker is empty"),
        ("memory://l0-raw?Session_id=x", "unknown parameter Session_id"),
        ("memory://stale-memory?reason=BORED", "reason must be 'LRU_EVICTION' or 'MANUAL_ARCHIVE'"),
        ("memory://stale-memory?days_back=0.5", "days_back"),
        ("memory://stale-memory?importance_min=7", "importance_min must be between 0.0 and 1.0"),
        ("memory://l2-insights?as_of=yesterday", "as_of must be a date and time such as"),
        ("memory://l2-insights?query=x&as_of=2999-01-01T00:00:00Z", "as_of 2999-01-01T00:00:00+00:00 is in the future"),
        ("memory://working-memory?as_of=2999-01-01T00:00:00Z", "is in the future: pass a time in the past"),
        ("memory://episode-memory?query=x&as_of=2999-01-01T00:00:00Z", "is in the future"),
        ("memory://l0-raw?as_of=2999-01-01T00:00:00Z", "is in the future"),
        ("memory://stale-memory?as_of=2999-01-01T00:00:00Z", "is in the future"),
        ("memory://stale-memory?limit=0", "limit must be between 1 and 1000, not 0"),
    ],
)
def test_a_bad_parameter_is_an_error_that_names_it(mcp: McpClient, uri: str, named: str) -> None:
    problem = mcp.read_refused(uri)
    assert named in problem.message
    assert problem.code == -32602
    assert problem.data["error"] == "Resource not found"
    assert problem.data["details"] == problem.message
    assert problem.data["tool"] == uri.partition("?")[0]
    assert problem.data["uri"] == uri


@pytest.mark.parametrize("uri", ["memory://nothing", "memory://", "memory://l0-raws?limit=1", "memory:l0-raw"])
def test_an_unknown_resource_is_not_found(mcp: McpClient, uri: str) -> None:
    problem = mcp.read_refused(uri)
    assert problem.code == -32602
    assert "Unknown resource" in problem.message
    assert problem.data["error"] == "Resource not found"
    assert problem.data["details"] == problem.message
    assert problem.data["uri"] == uri


def test_insights_that_a_query_found_have_their_score_and_others_have_none(mcp: McpClient, word: str) -> None:
    said = mcp.ok("store_raw_dialogue", session_id=word, speaker="user", content="Zebras are striped")
    mcp.ok("compress_to_l2_insight", content=f"Zebras have stripes {word}", source_ids=[said["id"]])
    assert contents(mcp, f"memory://l2-insights?query=zebras+{word}&top_k=1")[0]["score"] > 0.9
    assert all("score" not in entry for entry in contents(mcp, "memory://l2-insights"))


def test_an_episode_of_emoji_is_found_by_them(mcp: McpClient, word: str) -> None:
    mcp.ok("store_episode", query="🦓🦓", reward=0.5, reflection=f"Problem: no words. Lesson: {word}")
    found = contents(mcp, "memory://episode-memory?query=%F0%9F%A6%93%F0%9F%A6%93&min_similarity=0.9&top_k=100")
    assert any(word in episode["reflection"] for episode in found)


def test_resources_are_told_as_they_were(mcp: McpClient, word: str, insight: dict[str, Any]) -> None:
    mcp.ok("store_episode", query=f"how to {word}", reward=0.5, reflection="slowly")
    kept = mcp.ok("update_working_memory", content=f"keep {word}", importance=0.9)
    then = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    later = mcp.ok("compress_to_l2_insight", content=f"Later {word}", source_ids=[])
    mcp.ok("store_episode", query=f"how to {word}", reward=0.5, reflection="quickly")
    mcp.ok("store_raw_dialogue", session_id=word, speaker="user", content="later")
    mcp.ok("archive_working_memory", id=kept["added_id"])

    def told(uri: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = mcp.read(f"{uri}{'&' if '?' in uri else '?'}as_of={then}")["contents"]
        return entries

    for uri in (f"memory://l2-insights?query={word}", "memory://l2-insights"):
        ids = [entry["id"] for entry in told(uri)]
        assert insight["id"] in ids
        assert later["id"] not in ids
    found = mcp.ok("hybrid_search", query_text=word, as_of=then)["results"]
    assert found[0]["id"] == insight["id"]
    assert later["id"] not in [entry["id"] for entry in found]
    lessons = told(f"memory://episode-memory?query=how%20to%20{word}&min_similarity=0.9")
    assert [entry["reflection"] for entry in lessons] == ["slowly"]
    assert kept["added_id"] in [entry["id"] for entry in told("memory://working-memory")]
    assert kept["added_id"] not in [entry["id"] for entry in mcp.read("memory://working-memory")["contents"]]
    assert f"keep {word}" not in [entry["original_content"] for entry in told("memory://stale-memory")]
    assert "later" not in [entry["content"] for entry in told(f"memory://l0-raw?session_id={word}")]
