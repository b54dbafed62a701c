"""Providers: the real SDKs against a real socket, and the one that needs neither key nor network."""

import importlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.agent.config import ProviderConfig, load_config
from recollect.agent.context import ContextBuilder
from recollect.agent.faults import AgentError, ProviderError
from recollect.agent.loader import EngineLoader, open_provider
from recollect.agent.messages import Event, Finished, Message, Quote, ReasoningDelta, TextDelta, ToolCall, ToolSpec
from recollect.agent.providers.offline import HELP, OfflineProvider
from recollect.agent.secret import Secret
from recollect.agent.workspace.curated import MemorySnapshot
from tests.agent.configs import written
from tests.agent.leaks import API_KEY
from tests.agent.wire import (
    Answer,
    Wire,
    anthropic_call,
    anthropic_end,
    anthropic_events,
    anthropic_start,
    anthropic_text,
    openai_call,
    openai_chunks,
    openai_delta,
    serving,
)

TOOL = ToolSpec("memory", "Keeps facts.", {"type": "object", "properties": {"x": {"type": "integer"}}})
CONVERSATION = (
    Message("system", "Be kind.", "system"),
    Message("user", "Reference.", "reference"),
    Message("user", "Hello", "prompt"),
    Message("assistant", "", "tools", (ToolCall("c1", "memory", '{"x": 1}'), ToolCall("c2", "memory", "broken"))),
    Message("tool", "Kept.", "tools", tool_call_id="c1"),
    Message("tool", "Not JSON.", "tools", tool_call_id="c2", is_error=True),
)


def anthropic_answer(*pieces: str, reason: str = "end_turn") -> Answer:
    return Answer(anthropic_events(anthropic_start(), *anthropic_text(*pieces), *anthropic_end(reason)))


def openai_answer(*pieces: str, reason: str = "stop") -> Answer:
    return Answer(openai_chunks(*(openai_delta(content=piece) for piece in pieces), openai_delta(reason)))


ANSWERS: dict[str, Callable[..., Answer]] = {"anthropic": anthropic_answer, "openai": openai_answer}
both = pytest.mark.parametrize("name", ["anthropic", "openai"])


@pytest.fixture(scope="module", autouse=True)
def sdks() -> None:
    """Imported before the watch for leaks begins, which would follow every line of them."""
    for module in ("anthropic.resources.messages", "anthropic.types", "openai.resources.chat", "openai.types.chat"):
        importlib.import_module(module)


def config(name: Any, address: str, key: str | None = API_KEY) -> ProviderConfig:
    return ProviderConfig(name, "m", address, Secret(key) if key else None, max_tokens=77)


async def answer_of(name: str, wire: Wire, key: str = API_KEY) -> list[Event]:
    provider = open_provider(config(name, wire.address, key))
    provider._client.max_retries = 0  # type: ignore[attr-defined]
    try:
        return [event async for event in provider.stream(CONVERSATION, (TOOL,))]
    finally:
        await provider.close()


@both
async def test_text_comes_piece_by_piece_and_ends_with_the_reason(name: str) -> None:
    with serving(ANSWERS[name]("Hel", "lo ", "wörld")) as wire:
        events = await answer_of(name, wire)
    assert events == [TextDelta("Hel"), TextDelta("lo "), TextDelta("wörld"), Finished("stop")]


@pytest.mark.parametrize(
    ("name", "reason", "expected"),
    [
        ("anthropic", "max_tokens", "length"),
        ("anthropic", "refusal", "refused"),
        ("anthropic", "stop_sequence", "stop"),
        ("openai", "length", "length"),
        ("openai", "content_filter", "refused"),
        ("openai", "something_new", "stop"),
    ],
)
async def test_reasons_have_one_name(name: str, reason: str, expected: str) -> None:
    with serving(ANSWERS[name]("x", reason=reason)) as wire:
        assert (await answer_of(name, wire))[-1] == Finished(expected)  # type: ignore[arg-type]


async def test_anthropic_is_asked_in_its_own_words() -> None:
    with serving(anthropic_answer("x")) as wire:
        await answer_of("anthropic", wire)
    (request,) = wire.requests
    assert request["path"] == "/v1/messages"
    assert request["headers"]["authorization"] == f"Bearer {API_KEY}"
    assert request["body"] == {
        "model": "m",
        "max_tokens": 77,
        "stream": True,
        "system": "Be kind.",
        "tools": [{"name": "memory", "description": "Keeps facts.", "input_schema": TOOL.parameters}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Reference."}]},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "memory", "input": {"x": 1}},
                    {"type": "tool_use", "id": "c2", "name": "memory", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "Kept.", "is_error": False},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "Not JSON.", "is_error": True},
                ],
            },
        ],
    }


async def test_openai_is_asked_in_its_own_words() -> None:
    with serving(openai_answer("x")) as wire:
        await answer_of("openai", wire)
    (request,) = wire.requests
    assert request["path"] == "/chat/completions"
    assert request["headers"]["authorization"] == f"Bearer {API_KEY}"
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "memory", "arguments": '{"x": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "memory", "arguments": "broken"}},
    ]
    function = {"name": "memory", "description": "Keeps facts.", "parameters": TOOL.parameters}
    assert request["body"] == {
        "model": "m",
        "max_tokens": 77,
        "stream": True,
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Reference."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "Kept.", "tool_call_id": "c1"},
            {"role": "tool", "content": "Not JSON.", "tool_call_id": "c2"},
        ],
    }


async def test_anthropic_calls_are_put_together_from_their_pieces() -> None:
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}
    begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
    body = anthropic_events(
        anthropic_start(),
        begin,
        thought,
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        *anthropic_text("One moment.", index=1),
        *anthropic_call(2, "c1", "memory", '{"x"', ": 1}"),
        *anthropic_call(3, "c2", "memory"),
        *anthropic_end("tool_use"),
    )
    with serving(Answer(body)) as wire:
        events = await answer_of("anthropic", wire)
    assert events == [
        ReasoningDelta("Hm."),
        TextDelta("One moment."),
        ToolCall("c1", "memory", '{"x": 1}'),
        ToolCall("c2", "memory", "{}"),
        Finished("tools"),
    ]


async def test_openai_calls_are_put_together_from_their_pieces() -> None:
    body = openai_chunks(
        openai_delta(reasoning_content="Hm."),
        openai_delta(content="One moment."),
        openai_call(0, '{"x"', "c1", "memory"),
        openai_call(1, "", None, "memory"),
        openai_call(0, ": 1}"),
        openai_delta("tool_calls"),
        {"choices": []},
    )
    with serving(Answer(body)) as wire:
        events = await answer_of("openai", wire)
    assert events == [
        ReasoningDelta("Hm."),
        TextDelta("One moment."),
        ToolCall("c1", "memory", '{"x": 1}'),
        ToolCall("call_1", "memory", "{}"),
        Finished("tools"),
    ]


CUT_OFF = {
    "anthropic, by the connection": ("anthropic", anthropic_events(anthropic_start(), *anthropic_text("Ha")), False),
    "anthropic, by its end": ("anthropic", anthropic_events(anthropic_start(), *anthropic_text("Ha")), True),
    "anthropic, within a line": ("anthropic", anthropic_events(anthropic_start())[:-30], True),
    "openai, by the connection": ("openai", openai_chunks(openai_delta(content="Ha"), done=False), False),
    "openai, by its end": ("openai", openai_chunks(openai_delta(content="Ha"), done=False), True),
    "openai, after its end mark": ("openai", openai_chunks(openai_delta(content="Ha")), True),
}


@pytest.mark.parametrize("case", CUT_OFF)
async def test_an_answer_that_breaks_off_is_an_error_and_not_a_short_answer(case: str) -> None:
    name, body, whole = CUT_OFF[case]
    with (
        serving(Answer(body, whole=whole)) as wire,
        pytest.raises(ProviderError, match=r"was cut off|Cannot parse") as caught,
    ):
        await answer_of(name, wire)
    assert "\n" not in str(caught.value)


async def test_an_error_within_an_answer_says_what_the_provider_says() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Over\nloaded sk_other"}}
    with serving(Answer(anthropic_events(anthropic_start(), error))) as wire, pytest.raises(ProviderError) as caught:
        await answer_of("anthropic", wire, "sk_other")
    assert str(caught.value) == "Anthropic failed while sending its answer: try again. Its message: Over loaded ***"
    with (
        serving(Answer('data: {"error": {"message": "No more"}}\n\n')) as wire,
        pytest.raises(ProviderError, match=r"OpenAI failed while .* Its message: No more"),
    ):
        await answer_of("openai", wire)


@both
@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        (401, f"Incorrect key {API_KEY[:8]}", "answered with status 401: check the API key."),
        (404, "no model m", "answered with status 404: check the model name and the URL. Its message: no model m"),
        (
            429,
            "slow",
            "answered with status 429: too many requests or no credit left: wait and try again. Its message: slow",
        ),
        (500, "", "answered with status 500: try again later."),
    ],
)
async def test_a_refusal_is_one_sentence_without_the_key(name: str, status: int, message: str, sentence: str) -> None:
    error = json.dumps({"type": "error", "error": {"type": "x", "message": message}})
    with serving(Answer(error, status, "application/json")) as wire, pytest.raises(ProviderError) as caught:
        await answer_of(name, wire)
    assert str(caught.value).split(" ", 1)[1] == sentence


@both
async def test_nobody_at_the_address_is_one_sentence(name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProviderError, match=rf"^Cannot reach \w+ at {address}:"):
            await answer_of(name, Wire(address, []))


@both
@pytest.mark.parametrize(
    "body", ["<html>Welcome</html>", "data: nonsense\n\n", "event: message_start\ndata: []\n\n", ""]
)
async def test_something_else_at_the_address_is_one_sentence(name: str, body: str) -> None:
    with serving(Answer(body)) as wire, pytest.raises(ProviderError, match=r"Cannot parse|was cut off"):
        await answer_of(name, wire)


@both
@pytest.mark.parametrize(("body", "kind"), [("<html>Hi</html>", "text/html"), ('{"choices": []}', "application/json")])
async def test_a_page_or_plain_json_is_told_from_an_answer_that_breaks_off(name: str, body: str, kind: str) -> None:
    with serving(Answer(body, kind=kind)) as wire, pytest.raises(ProviderError, match="check that the URL"):
        await answer_of(name, wire)


async def test_a_server_of_ones_own_needs_no_key() -> None:
    with serving(openai_answer("Hi")) as wire:
        provider = open_provider(config("openai", wire.address, None))
        events = [event async for event in provider.stream(CONVERSATION, ())]
        await provider.close()
    assert events[-1] == Finished("stop")
    assert "tools" not in wire.requests[0]["body"]


@both
async def test_a_whole_run_goes_through_the_sdk(name: str, tmp_path: Path) -> None:
    arguments = json.dumps({"action": "add", "target": "user", "content": "Likes tea."})
    if name == "anthropic":
        called = anthropic_events(
            anthropic_start(), *anthropic_call(0, "c1", "memory", arguments), *anthropic_end("tool_use")
        )
    else:
        called = openai_chunks(openai_call(0, arguments, "c1", "memory"), openai_delta("tool_calls"))
    with serving(Answer(called), ANSWERS[name]("No", "ted.")) as wire:
        provider = {"name": name, "model": "m", "baseUrl": wire.address, "apiKey": API_KEY}
        document = {"memory": {"mode": "curated"}, "provider": provider}
        runtime = EngineLoader(load_config(written(tmp_path, document))).load()
        shown: list[str] = []
        result = await runtime.loop.run(None, "I like tea.", shown.append)
        await runtime.close()
    assert (result.answer, shown, result.tool_rounds) == ("Noted.", ["No", "ted."], 1)
    assert (tmp_path / "USER.md").read_text() == "- Likes tea.\n"
    assert "Added to USER.md" in json.dumps(wire.requests[1]["body"]["messages"][-1])


@both
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"recollect.agent.providers.{name}_api", raising=False)
    with pytest.raises(AgentError, match=rf"needs the package {name}: pip install 'recollect\[llm\]'"):
        open_provider(config(name, "http://127.0.0.1:1"))


def test_the_runtime_imports_no_sdk_and_nothing_of_the_engine_until_asked() -> None:
    program = "import json, sys; import recollect.agent.loader; print(json.dumps(list(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = json.loads(printed.stdout)
    assert not {"anthropic", "openai", "asyncpg", "numpy", "fastapi", "pydantic"}.intersection(loaded)
    assert {module for module in loaded if module.startswith("recollect.")} == {
        module for module in loaded if module.startswith("recollect.agent")
    }


async def offline(prompt: str, memory: str = "", user: str = "", *references: str) -> str | dict[str, Any]:
    """The offline provider's text, or the arguments of the call it makes."""
    messages = ContextBuilder().build_messages(MemorySnapshot(memory, user), prompt, references=references)
    tools = (TOOL, ToolSpec("session_search", "Finds.", {}))
    events = [event async for event in OfflineProvider().stream(messages, tools)]
    call = next((event for event in events if isinstance(event, ToolCall)), None)
    assert events[-1] == Finished("tools" if call else "stop")
    return json.loads(call.arguments) if call else "".join(e.text for e in events if isinstance(e, TextDelta | Quote))


@pytest.mark.parametrize(
    ("prompt", "arguments"),
    [
        ("remember that tea is hot", {"action": "add", "target": "memory", "content": "tea is hot"}),
        ("Remember: two\nlines", {"action": "add", "target": "memory", "content": "two\nlines"}),
        ("remember about me that I sail", {"action": "add", "target": "user", "content": "I sail"}),
        ("Remember about me: I sail", {"action": "add", "target": "user", "content": "I sail"}),
        ("remember : when in doubt, ask", {"action": "add", "target": "memory", "content": "when in doubt, ask"}),
        ("remember that why?", {"action": "add", "target": "memory", "content": "why?"}),
        ("forget the boat.", {"action": "remove", "target": "user", "old_text": "Owns the boat."}),
        ("forget THE car", {"action": "remove", "target": "memory", "old_text": "The car is red."}),
        (
            "replace the boat with a raft",
            {"action": "replace", "target": "user", "old_text": "Owns the boat.", "content": "Owns a raft."},
        ),
        (
            "replace RED with blue",
            {"action": "replace", "target": "memory", "old_text": "The car is red.", "content": "The car is blue."},
        ),
        (
            "replace the bus with a tram",
            {"action": "replace", "target": "memory", "old_text": "the bus", "content": "a tram"},
        ),
        ("search for whales", {"query": "whales"}),
    ],
)
async def test_offline_commands_become_tool_calls(prompt: str, arguments: dict[str, str]) -> None:
    assert await offline(prompt, "- The car is red.", "- Owns the boat.") == arguments


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("forget it", "Say which entry you mean, with a few words from it."),
        ("Forget everything!", "Say which entry you mean, with a few words from it."),
        ("replace it with tea", "Say which entry you mean, with a few words from it."),
        ("forget the kit", "No memory entry contains these words."),
    ],
)
async def test_offline_forgets_nothing_that_was_not_named(prompt: str, answer: str) -> None:
    assert await offline(prompt, "- The kitchen is lit.") == answer


@pytest.mark.parametrize(
    "prompt", ["Remember when we went to Paris?", "remember who was there", "Remember me?", "remember", "replace x"]
)
async def test_offline_takes_a_question_for_one(prompt: str) -> None:
    assert await offline(prompt) == "Nothing found in memory.\n\n" + HELP


async def test_offline_lets_the_tool_ask_which_of_several_entries_to_forget() -> None:
    call = await offline("forget tea", "- tea at five\n- tea is hot\n- teapot\n")
    assert call == {"action": "remove", "target": "memory", "old_text": "tea"}


async def test_offline_replaces_words_inside_an_entry_and_leaves_the_rest_of_it() -> None:
    call = await offline("replace red with blue", "- Bored of Red, the red horse")
    assert call == {
        "action": "replace",
        "target": "memory",
        "old_text": "Bored of Red, the red horse",
        "content": "Bored of Red, the blue horse",
    }
    call = await offline(r"replace boat with \1", "- Owns a houseboat")
    assert isinstance(call, dict)
    assert call["content"] == r"Owns a house\1"


async def test_offline_lets_the_tool_refuse_a_replacement_of_one_of_several_entries() -> None:
    call = await offline("replace tea with milk", "- tea at five\n- tea is hot\n")
    assert call == {"action": "replace", "target": "memory", "old_text": "tea", "content": "milk"}


async def test_offline_answers_show_what_is_recalled_and_what_is_curated() -> None:
    reference = 'MEMORY GATEWAY RECALL\n<f>\n{"text": "The parrot\\nis Coco.", "score": 1}\n</f>'
    assert await offline("Who is Coco?", "# Notes\n\n- Tea at five\n", "", reference) == (
        "Recalled from the memory gateway:\n- The parrot is Coco.\n\nCurated in MEMORY.md:\n- Tea at five\n\n" + HELP
    )
    assert await offline("Who?") == "Nothing found in memory.\n\n" + HELP
    assert "- and 2 more" in await offline("Who?", "".join(f"- fact {number}\n" for number in range(12)))


async def test_an_offline_answer_does_not_repeat_earlier_ones_that_are_recalled() -> None:
    said = [await offline("Who?"), await offline("Who?", "- Tea"), await offline("Who?", "", "", '{"text": "Tea"}')]
    recalled = "\n".join(json.dumps({"text": answer}) for answer in said)
    assert await offline("Who?", "", "", recalled) == await offline("Who?")
