"""Runs beyond the contract's sentences: limits, failures, history, and the exact messages of one run."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from recollect.agent.config import AgentConfig, ConfigurationError, MemoryConfig, load_config
from recollect.agent.context import CUT, MAX_HISTORY_CHARACTERS, MAX_HISTORY_MESSAGES, MAX_MESSAGE_CHARACTERS
from recollect.agent.faults import ProviderError, Refused
from recollect.agent.loader import EngineLoader
from recollect.agent.loop import (
    CREDENTIAL_TYPED,
    DECLINED_ANSWER,
    EMPTY_ANSWER,
    PERSISTING,
    RECALLING,
    AgentRunResult,
)
from recollect.agent.messages import Event, Finished, Message, TextDelta, ToolCall, ToolSpec
from tests.agent import configs
from tests.agent.leaks import USER_KEY
from tests.agent.runtime import RECALLED, FakeGateway, Reply, ScriptedProvider, calls, lines, running, says

GOLDEN = Path(__file__).parent / "golden"


async def test_the_answer_at_the_tool_limit_is_returned_and_persisted(tmp_path: Path) -> None:
    shown: list[str] = []
    provider = ScriptedProvider(*[calls("session_search", query="x")] * 9)
    gateway = FakeGateway()
    async with running(tmp_path, provider, gateway) as runtime:
        result = await runtime.loop.run("s1", "Search for ever.", shown.append)
    assert (result.finish_reason, result.tool_rounds) == ("tool_limit", 8)
    assert len(provider.seen) == 9
    assert result.answer.startswith("I stopped after 8 rounds")
    assert "".join(shown) == result.answer
    assert gateway.named("add")[0]["messages"][1]["content"] == result.answer


@pytest.mark.parametrize(
    "reply",
    [ProviderError("The model is gone."), [TextDelta("Half an ans")], RuntimeError("details of others")],
    ids=["failed", "broken off", "bug"],
)
async def test_a_run_that_fails_is_recorded_hidden_and_not_persisted(tmp_path: Path, reply: Reply) -> None:
    gateway = FakeGateway()
    async with running(tmp_path, ScriptedProvider(reply, says("Back.")), gateway) as runtime:
        with pytest.raises((ProviderError, RuntimeError)):
            await runtime.loop.run("s1", "Hello")
        assert [name for name, _ in gateway.requests] == ["search"]
        await runtime.loop.run("s1", "Again")
    events = lines(tmp_path, "s1")
    (failed,) = [event for event in events if event["type"] == "run_failed"]
    assert not failed["context_visible"]
    assert "details of others" not in json.dumps(failed)
    assert [e["content"] for e in events if e["context_visible"]] == ["Hello", "Again", "Back."]


class HangingProvider(ScriptedProvider):
    async def stream(self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> AsyncGenerator[Event, None]:
        yield TextDelta("Well")
        await asyncio.Event().wait()


async def test_a_run_that_is_stopped_is_recorded_and_not_persisted(tmp_path: Path) -> None:
    gateway = FakeGateway()
    async with running(tmp_path, HangingProvider(), gateway) as runtime:
        begun = asyncio.Event()
        task = asyncio.create_task(runtime.loop.run("s1", "Hello", lambda text: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert lines(tmp_path, "s1")[-1]["payload"] == {"error": "CancelledError"}
    assert gateway.named("add") == []


class SilentGateway(FakeGateway):
    """Says nothing at one step, for ever."""

    def __init__(self, silent: str) -> None:
        super().__init__()
        self._silent = silent
        self.reached = asyncio.Event()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        answer = self(request)
        if request.url.path.endswith(self._silent):
            self.reached.set()
            await asyncio.Event().wait()
        return answer


@pytest.mark.parametrize(
    ("silent", "recorded"),
    [
        ("search", ["message", "memory_gateway_recall_failed", "run_failed"]),
        ("add", ["message", "memory_gateway_recall_succeeded", "message", "memory_gateway_add_failed"]),
        (
            "flush",
            [
                "message",
                "memory_gateway_recall_succeeded",
                "message",
                "memory_gateway_add_succeeded",
                "memory_gateway_flush_failed",
            ],
        ),
    ],
)
async def test_a_run_that_is_stopped_at_the_gateway_has_every_event_up_to_then(
    tmp_path: Path, silent: str, recorded: list[str]
) -> None:
    gateway = SilentGateway(silent)
    steps: list[str] = []
    async with running(tmp_path, ScriptedProvider(says("Hi.")), gateway.answer) as runtime:
        task = asyncio.create_task(runtime.loop.run("s1", "Hello", progress=steps.append))
        await gateway.reached.wait()
        assert [event["type"] for event in lines(tmp_path, "s1")] == recorded[: -2 if silent == "search" else -1]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    events = lines(tmp_path, "s1")
    assert [event["type"] for event in events] == recorded
    (failed,) = [event for event in events if event["type"].startswith("memory_") and "failed" in event["type"]]
    assert failed["payload"]["category"] == "stopped"
    assert steps == [RECALLING] if silent == "search" else [RECALLING, PERSISTING]


async def test_what_memory_says_is_shown_and_neither_kept_nor_sent(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("- The office is in Ulm.\n")
    shown: list[str] = []
    gateway = FakeGateway()
    runtime = EngineLoader(
        load_config(configs.written(tmp_path, configs.hybrid())), gateway_transport=httpx.MockTransport(gateway)
    ).load()
    for prompt in ("What is the parrot called?", "forget the moon", "search parrot", "replace office with shop"):
        result = await runtime.loop.run("s1", prompt, shown.append)
        assert result.answer
    await runtime.close()
    told = "".join(shown)
    assert RECALLED in told
    assert "Ulm" in told
    kept = json.dumps([*gateway.named("add"), *(event for event in lines(tmp_path, "s1") if event["context_visible"])])
    assert "Ulm" not in kept
    assert RECALLED not in kept
    assert "user: What is the parrot" not in kept


async def test_half_characters_in_a_call_do_not_end_the_run(tmp_path: Path) -> None:
    arguments = '{"action": "remove", "target": "memory", "old_text": "\\ud800 tea"}'
    call: Reply = [ToolCall("c\ud800", "memory", arguments + "\ud83d"), Finished("tools")]
    escaped: Reply = [ToolCall("c1", "memory", arguments), Finished("tools")]
    provider = ScriptedProvider(call, escaped, says("Sorry."))
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        assert (await runtime.loop.run("s1", "Forget it.")).answer == "Sorry."
    for message in provider.seen[-1]:
        assert message.content.encode() or message.tool_calls
        for called in message.tool_calls:
            assert f"{called.id}{called.name}{called.arguments}".encode()
            with contextlib.suppress(json.JSONDecodeError):
                assert json.dumps(json.loads(called.arguments), ensure_ascii=False).encode()


async def test_a_credential_that_is_typed_is_not_kept(tmp_path: Path) -> None:
    gateway = FakeGateway()
    provider = ScriptedProvider(says("Keep it to yourself."))
    async with running(tmp_path, provider, gateway) as runtime:
        result = await runtime.loop.run("s1", f"My key is {USER_KEY}, what now?")
    assert result.warnings == (CREDENTIAL_TYPED,)
    assert provider.seen[0][-1].content == "My key is ***, what now?"
    (added,) = gateway.named("add")
    assert added["messages"][0]["content"] == "My key is ***, what now?"
    assert USER_KEY not in (tmp_path / "sessions" / "s1.jsonl").read_text()


async def test_a_file_that_is_edited_during_the_conversation_is_warned_of(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("One."), says("Two."))
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        assert (await runtime.loop.run("s1", "Hello")).warnings == ()
        (tmp_path / "USER.md").write_text("- " + "x" * 3000)
        (warning,) = (await runtime.loop.run("s1", "Hello")).warnings
    assert warning.startswith("USER.md has 3,002 characters, above its limit")


async def test_the_status_tells_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedProvider(), FakeGateway(), "curated") as runtime:
        (tmp_path / "MEMORY.md").write_bytes(b"\xff")
        curated = runtime.status()["memory"]["curated"]
    assert curated["USER.md"] == {"characters": 0, "limit": 2000}
    assert "is not UTF-8 text" in curated["MEMORY.md"]["fault"]


@pytest.mark.parametrize(
    ("reply", "answer", "reason"),
    [
        ([Finished("stop")], EMPTY_ANSWER, "stop"),
        ([TextDelta(" \n"), Finished("stop")], EMPTY_ANSWER, "stop"),
        ([Finished("refused")], DECLINED_ANSWER, "refused"),
        ([TextDelta("So much"), Finished("length")], "So much", "length"),
        ([TextDelta("Cut"), ToolCall("c", "memory", '{"action": "a'), Finished("length")], "Cut", "length"),
        ([TextDelta("\ud83d"), TextDelta("\ude00 and \ud800"), Finished("stop")], "😀 and \ufffd", "stop"),
    ],
    ids=["empty", "blank", "declined", "cut", "cut call", "half characters"],
)
async def test_every_way_to_finish_has_an_answer(tmp_path: Path, reply: Reply, answer: str, reason: str) -> None:
    gateway = FakeGateway()
    async with running(tmp_path, ScriptedProvider(reply), gateway) as runtime:
        result = await runtime.loop.run("s1", "Hello")
    assert (result.answer, result.finish_reason, result.tool_rounds) == (answer, reason, 0)
    assert gateway.named("add")[0]["messages"][1]["content"] == answer


async def test_an_answer_given_before_the_last_tool_call_is_the_answer(tmp_path: Path) -> None:
    said = calls("memory", "Your bird is Coco.", action="add", target="user", content="Has a bird.")
    async with running(tmp_path, ScriptedProvider(said, [Finished("stop")]), FakeGateway()) as runtime:
        result = await runtime.loop.run("s1", "My bird?")
    assert result == AgentRunResult("s1", "Your bird is Coco.", "stop", 1, ("memory",))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("telepathy", "{}", "Unknown tool 'telepathy'. Available tools: memory, session_search."),
        ("memory", "{broken", "are not JSON"),
        ("memory", "[]", "must be a JSON object"),
        ("memory", "{}", "target must be one of memory, user"),
        ("memory", '{"action": "add", "target": "memory"}', "content is required"),
        ("memory", '{"action": "eat", "target": "memory"}', "action must be one of add, replace, remove"),
        ("session_search", '{"query": 7}', "query is required"),
    ],
)
async def test_a_wrong_tool_call_is_told_to_the_model_and_the_run_goes_on(
    tmp_path: Path, name: str, arguments: str, told: str
) -> None:
    provider = ScriptedProvider([ToolCall("c1", name, arguments), Finished("tools")], says("Sorry."))
    async with running(tmp_path, provider, FakeGateway()) as runtime:
        result = await runtime.loop.run(None, "Hello")
    assert result.answer == "Sorry."
    told_back = provider.seen[1][-1]
    assert (told_back.role, told_back.tool_call_id, told_back.is_error) == ("tool", "c1", True)
    assert told in told_back.content


@pytest.mark.parametrize("prompt", ["", " \n", "\ud800", "a\0b", "x" * 100_001, "/skill nowhere"])
async def test_a_prompt_that_cannot_be_used_stores_and_asks_nothing(tmp_path: Path, prompt: str) -> None:
    gateway = FakeGateway()
    async with running(tmp_path, ScriptedProvider(), gateway) as runtime:
        with pytest.raises(Refused):
            await runtime.loop.run("s1", prompt)
    assert gateway.requests == []
    assert not (tmp_path / "sessions").exists()


async def test_history_is_bounded_by_messages_and_characters_and_begins_with_the_user(tmp_path: Path) -> None:
    provider = ScriptedProvider(*[says(f"Answer {number}") for number in range(30)], says("x" * 20_000), says("end"))
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        for number in range(30):
            await runtime.loop.run("s1", f"Question {number}")
        await runtime.loop.run("s1", "A long one.")
        await runtime.loop.run("s1", "And now?")
    history = [message for message in provider.seen[-1] if message.kind == "history"]
    assert len(history) == MAX_HISTORY_MESSAGES
    assert (history[0].role, history[-2].content) == ("user", "A long one.")
    assert history[-1].content == "x" * MAX_MESSAGE_CHARACTERS + CUT
    provider._replies = [says("y" * MAX_MESSAGE_CHARACTERS) for _ in range(6)] + [says("end")]
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        for _ in range(7):
            await runtime.loop.run("s2", "More.")
    history = [message for message in provider.seen[-1] if message.kind == "history"]
    assert sum(len(message.content) for message in history) <= MAX_HISTORY_CHARACTERS
    assert [message.role for message in history] == ["user", "assistant"] * 3


async def test_a_write_of_the_run_shows_in_the_next_snapshot_and_not_in_this_one(tmp_path: Path) -> None:
    added = calls("memory", action="add", target="user", content="Speaks Welsh.")
    provider = ScriptedProvider(added, says("ok"), says("ok"))
    async with running(tmp_path, provider, FakeGateway(), "curated") as runtime:
        await runtime.loop.run("s1", "Hello")
        await runtime.loop.run("s1", "Hello again")
    assert ["Speaks Welsh." in messages[0].content for messages in provider.seen] == [False, False, True]


@pytest.mark.parametrize("mode", ["hybrid", "curated"])
def test_a_configuration_made_without_a_file_is_held_to_its_mode(tmp_path: Path, mode: str) -> None:
    if mode == "curated":
        memory = MemoryConfig("curated", True, configs.gateway())
        assert EngineLoader(AgentConfig(memory, workspace=tmp_path)).load().memory_gateway_service is None
    else:
        with pytest.raises(ConfigurationError, match=r"requires memory\.gateway\.baseUrl"):
            EngineLoader(AgentConfig(MemoryConfig("hybrid", True), workspace=tmp_path)).load()


async def test_the_status_names_everything_but_credentials(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedProvider(), FakeGateway()) as runtime:
        status = runtime.status()
    assert USER_KEY not in json.dumps(status)
    assert status["memory"]["gateway"]["user_id"] == "gateway_test_user"
    assert status["memory"]["gateway"]["active"] is True
    assert status["provider"] == {"name": "offline", "model": "scripted"}


@pytest.mark.parametrize("mode", ["curated", "hybrid"])
async def test_the_exact_messages_of_a_run_are_those_of_the_golden_file(tmp_path: Path, mode: str) -> None:
    (tmp_path / "MEMORY.md").write_text("# Notes\n\n- The office is in Ulm.\n")
    (tmp_path / "USER.md").write_text("- Ada prefers tea.\n")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "birds.md").write_text("---\ntriggers: parrot\n---\nSpeak of birds kindly.\n")
    looked = calls("session_search", "Let me look.", query="parrot")
    provider = ScriptedProvider(says("Good morning."), looked, says("Coco."))
    async with running(tmp_path, provider, FakeGateway(), mode) as runtime:
        await runtime.loop.run("s1", "Good morning")
        await runtime.loop.run("s1", "What is the parrot called?")
    shown = [{name: value for name, value in asdict(message).items() if value} for message in provider.seen[-1]]
    seen = json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
    print(seen)
    assert seen == (GOLDEN / f"{mode}.json").read_text()
