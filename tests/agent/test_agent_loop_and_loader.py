"""The contract's agent loop and loader tests, one for each sentence."""

import json
from pathlib import Path

import pytest

from recollect.agent.loop import AgentRunResult
from recollect.agent.messages import Event, Finished, ReasoningDelta, TextDelta, ToolCall
from recollect.agent.recall.reference import SYSTEM_RULE
from tests.agent.leaks import CANARY
from tests.agent.runtime import RECALLED, FakeGateway, ScriptedProvider, calls, lines, running, says, system_prompt

CURATED = "The office is in Ulm."
ABOUT = "Ada prefers tea."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "MEMORY.md").write_text(f"- {CURATED}\n")
    (tmp_path / "USER.md").write_text(f"- {ABOUT}\n")
    return tmp_path


def curated_files(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in ("MEMORY.md", "USER.md")}


@pytest.mark.parametrize("mode", ["curated", "hybrid", "implicit"])
async def test_curated_snapshot_injection_and_memory_tool_availability_remain_present_in_both_modes(
    folder: Path, mode: str
) -> None:
    provider = ScriptedProvider(calls("memory", action="add", target="memory", content="The key is blue."), says("ok"))
    async with running(folder, provider, FakeGateway(), mode) as runtime:
        await runtime.loop.run(None, "Hello")
    assert CURATED in system_prompt(provider.seen[0])
    assert ABOUT in system_prompt(provider.seen[0])
    assert [tool.name for tool in provider.tools[0]] == ["memory", "session_search"]
    assert "- The key is blue.\n" in (folder / "MEMORY.md").read_text()


async def test_hybrid_search_occurs_before_the_provider_call_while_the_curated_snapshot_is_in_the_system_prompt(
    folder: Path,
) -> None:
    journal: list[str] = []
    provider = ScriptedProvider(says("Coco."), journal=journal)
    async with running(folder, provider, FakeGateway(journal)) as runtime:
        await runtime.loop.run("s1", "What is the parrot called?")
    assert journal[:2] == ["search", "provider asked"]
    assert CURATED in system_prompt(provider.seen[0])


async def test_gateway_recall_appears_before_the_current_user_prompt_and_outside_the_system_prompt_body(
    folder: Path,
) -> None:
    (folder / "skills").mkdir()
    (folder / "skills" / "birds.md").write_text("---\ntriggers: parrot\n---\nSpeak of birds kindly.\n")
    provider = ScriptedProvider(says("Hello."), says("Coco."))
    async with running(folder, provider, FakeGateway()) as runtime:
        await runtime.loop.run("s1", "Hello")
        await runtime.loop.run("s1", "What is the parrot called?")
    kinds = [message.kind for message in provider.seen[1]]
    assert kinds == ["system", "skill", "reference", "history", "history", "prompt"]
    reference = provider.seen[1][2]
    assert RECALLED in reference.content
    assert reference.role == "user"
    assert RECALLED not in system_prompt(provider.seen[1])
    assert provider.seen[1][-1].content == "What is the parrot called?"


@pytest.mark.parametrize(("mode", "expected"), [("hybrid", 1), ("curated", 0), ("implicit", 0)])
async def test_the_system_prompt_contains_the_untrusted_reference_rule_only_when_gateway_is_active(
    folder: Path, mode: str, expected: int
) -> None:
    provider = ScriptedProvider(says("Hello."))
    async with running(folder, provider, FakeGateway(results=[]), mode) as runtime:
        await runtime.loop.run(None, "Hello")
    assert system_prompt(provider.seen[0]).count(SYSTEM_RULE) == expected
    assert not [message for message in provider.seen[0] if message.kind == "reference"]


async def test_add_and_flush_happen_after_the_final_assistant_response_and_exactly_once_each(folder: Path) -> None:
    journal: list[str] = []
    provider = ScriptedProvider(calls("session_search", query="parrot"), says("Coco."), journal=journal)
    gateway = FakeGateway(journal)
    async with running(folder, provider, gateway) as runtime:
        await runtime.loop.run("s1", "What is the parrot called?")
    asked = ["provider asked", "provider answered"]
    assert journal == ["search", *asked, *asked, "add", "flush", "provider closed"]
    (added,), (flushed,) = gateway.named("add"), gateway.named("flush")
    assert added["session_id"] == flushed["session_id"] == "chat:s1"
    user, assistant = added["messages"]
    assert (user["role"], user["content"]) == ("user", "What is the parrot called?")
    assert (assistant["role"], assistant["content"], assistant["sender_id"]) == ("assistant", "Coco.", "beaver")
    assert 0 < user["timestamp"] <= assistant["timestamp"]


async def test_tool_system_reasoning_curated_and_gateway_recall_content_is_absent_from_the_add_payload(
    folder: Path,
) -> None:
    (folder / "skills").mkdir()
    (folder / "skills" / "birds.md").write_text("---\ntriggers: parrot\n---\nSpeak of birds kindly.\n")
    reasoned: list[Event] = [
        ReasoningDelta("secret thought"),
        TextDelta("Let me look."),
        ToolCall("c1", "memory", json.dumps({"action": "add", "target": "user", "content": "Owns a parrot."})),
        Finished("tools"),
    ]
    gateway = FakeGateway()
    async with running(folder, ScriptedProvider(reasoned, says("It is Coco.")), gateway) as runtime:
        await runtime.loop.run("s1", "What is the parrot called?")
    (added,) = gateway.named("add")
    assert [message["content"] for message in added["messages"]] == ["What is the parrot called?", "It is Coco."]
    payload = json.dumps(added)
    for absent in (
        "secret thought",
        "Let me look",
        "Owns a parrot",
        "kindly",
        CURATED,
        ABOUT,
        RECALLED,
        "curated_memory",
    ):
        assert absent not in payload


FAILURES = {"recall": {"search": 401}, "connection": {"search": 0}, "add": {"add": 503}, "flush": {"flush": 500}}


@pytest.mark.parametrize("failing", FAILURES)
async def test_recall_add_and_flush_failures_do_not_change_the_result_or_the_curated_snapshot_and_tool_behaviour(
    folder: Path, failing: str
) -> None:
    provider = ScriptedProvider(calls("memory", action="add", target="memory", content="Kept."), says("Done."))
    gateway = FakeGateway(failing=FAILURES[failing])
    async with running(folder, provider, gateway) as runtime:
        result = await runtime.loop.run("s1", "Keep this.")
    assert result == AgentRunResult("s1", "Done.", "stop", 1, ("memory",))
    assert CURATED in system_prompt(provider.seen[0])
    assert "- Kept.\n" in (folder / "MEMORY.md").read_text()
    assert len(gateway.named("flush")) == (0 if failing == "add" else 1)


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ({}, ["recall_succeeded", "add_succeeded", "flush_succeeded"]),
        ({"search": 401}, ["recall_failed", "add_succeeded", "flush_succeeded"]),
        ({"add": 500}, ["recall_succeeded", "add_failed"]),
        ({"flush": 500}, ["recall_succeeded", "add_succeeded", "flush_failed"]),
    ],
    ids=["none", "recall", "add", "flush"],
)
async def test_hidden_success_and_failure_audit_events_contain_no_credentials(
    folder: Path, failing: dict[str, int], expected: list[str]
) -> None:
    async with running(folder, ScriptedProvider(says("Hi.")), FakeGateway(failing=failing)) as runtime:
        await runtime.loop.run("s1", "Hello")
    events = [event for event in lines(folder, "s1") if event["type"].startswith("memory_gateway_")]
    assert [event["type"].removeprefix("memory_gateway_") for event in events] == expected
    assert not any(event["context_visible"] for event in events)
    text = (folder / "sessions" / "s1.jsonl").read_text()
    assert CANARY not in text
    assert RECALLED not in text


async def test_curated_memory_tool_operations_produce_no_gateway_calls(folder: Path) -> None:
    journal: list[str] = []
    provider = ScriptedProvider(
        calls("memory", action="add", target="memory", content="One."),
        calls("memory", action="replace", target="memory", old_text="One.", content="Two."),
        calls("memory", action="remove", target="user", old_text="tea"),
        says("Done."),
        journal=journal,
    )
    async with running(folder, provider, FakeGateway(journal)) as runtime:
        result = await runtime.loop.run("s1", "Tidy up.")
    assert result.tool_rounds == 3
    assert [entry for entry in journal if "provider" not in entry] == ["search", "add", "flush"]
    assert journal.index("add") > max(place for place, entry in enumerate(journal) if entry == "provider answered")
    assert curated_files(folder) == {"MEMORY.md": f"- {CURATED}\n- Two.\n", "USER.md": ""}


async def test_gateway_persistence_produces_no_changes_to_memory_md_or_user_md(folder: Path) -> None:
    before = curated_files(folder)
    gateway = FakeGateway()
    async with running(folder, ScriptedProvider(says("Noted.")), gateway) as runtime:
        await runtime.loop.run("s1", "I moved to Bonn.")
    assert len(gateway.named("add")) == 1
    assert curated_files(folder) == before


@pytest.mark.parametrize("mode", ["curated", "implicit"])
async def test_curated_mode_and_degraded_implicit_hybrid_perform_no_gateway_http_calls(folder: Path, mode: str) -> None:
    gateway = FakeGateway()
    async with running(folder, ScriptedProvider(says("Hi.")), gateway, mode) as runtime:
        assert runtime.memory_gateway_service is None
        await runtime.loop.run("s1", "Hello")
    assert gateway.requests == []
    assert [event["type"] for event in lines(folder, "s1")] == ["message", "message"]
