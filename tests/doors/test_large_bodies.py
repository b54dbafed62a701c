"""While a large body is read, cut, weighed and stored, the event loop goes on: no single callback keeps it long.

Counted is the processor time of each callback, which does not depend on what else the machine does. The bodies are
some megabytes; before, a callback took as long as the body was large, and seconds for these.
"""

import asyncio
import gc
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from recollect.engine import Engine
from recollect.tasks import in_thread
from tests.rest_servers import listening

SIZE = 2_000_000
LONGEST_SECONDS = 0.2
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


pytestmark = pytest.mark.unindexed("megabytes of text would keep the indexers from the other tests' work")


@pytest.fixture
def pooling() -> Literal["session"]:
    return "session"


@dataclass
class Callbacks:
    """The longest one, and what it was."""

    seconds: float = 0.0
    what: str = ""

    def note(self, handle: asyncio.Handle, seconds: float) -> None:
        if seconds > self.seconds:
            self.seconds, self.what = seconds, repr(handle)[:500]


@contextmanager
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callbacks]:
    callbacks = Callbacks()
    run = asyncio.Handle._run
    # As `recollect serve` does once it is up. What other tests left here would otherwise be looked through by the
    # collector in one of the callbacks, for as long as there is much of it; what this one makes still is.
    gc.collect()
    gc.freeze()

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        try:
            run(handle)
        finally:
            callbacks.note(handle, time.thread_time() - began)

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        yield callbacks


def ask(url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """In a thread: a client on the loop would be measured, too."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    try:
        connection.request(method, path, body, HEADERS)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def memory(text: str) -> dict[str, Any]:
    return {"messages": text, "user_id": "u", "category": "fact"}


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


PROSE = "".join(f"In week {n} Anna{n % 97} told Ben{n % 61} of the {n % 89} boats. " for n in range(SIZE // 45))
BODIES: dict[str, tuple[str, Any, int]] = {
    "a message of prose": ("/stm/s/messages", message(PROSE), 200),
    "a message of one word": ("/stm/s/messages", message("a" * SIZE), 200),
    "a message of line breaks": ("/stm/s/messages", message("x" + "\n" * SIZE), 200),
    "a message of Han": ("/stm/s/messages", message("漢字仮名交文" * (SIZE // 12)), 200),
    "a thousand messages": ("/stm/s/messages", {"messages": message(PROSE[:1000])["messages"] * 1000}, 200),
    "a memory": ("/ltm/memories", memory(PROSE), 200),
    "a memory of full stops and quotes": ("/ltm/memories", memory('."' * 20_000 + "x"), 200),
    "a memory of marks": ("/ltm/memories", memory("a" + "\u0301" * 20_000 + "\u0316" * 20_000), 200),
    "a million lists": ("/stm/s/messages", {"messages": [], "x": [[]] * 1_000_000}, 422),
    "a hundred thousand numbers": ("/stm/s/messages", {"messages": [], "x": list(range(99_000))}, 422),
    "much metadata": (
        "/stm/s/messages",
        {"messages": [{**message("x")["messages"][0], "metadata": {"n": [1] * 400_000}}]},
        422,
    ),
    "a tool's text": (
        "/mcp",
        call("store_raw_dialogue", {"session_id": "m", "speaker": "user", "content": PROSE}),
        200,
    ),
    "many wrong ids for a tool": (
        "/mcp",
        call("compress_to_l2_insight", {"content": "x", "source_ids": [{}] * 99_000}),
        200,
    ),
    "many unknown parameters for a tool": ("/mcp", call("ping", {f"p{n}": 1 for n in range(99_000)}), 200),
    "a list of a million objects for a tool": ("/mcp", [{}] * 1_000_000, 400),
    "a million lists for a tool": ("/mcp", call("store_raw_dialogue", {"x": [[]] * 1_000_000}), 400),
}


@pytest.mark.parametrize("what", BODIES)
async def test_no_callback_keeps_the_loop_for_long(engine: Engine, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    path, content, status = BODIES[what]
    body = json.dumps(content, ensure_ascii=False).encode()
    async with listening(engine) as url:
        await in_thread(ask, url, "GET", "/health")
        with watching(monkeypatch) as callbacks:
            answered, text = await in_thread(ask, url, "POST", path, body)
    assert answered == status, text[:500]
    assert callbacks.seconds < LONGEST_SECONDS, callbacks.what


async def test_a_large_memory_is_forgotten_in_steps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(engine) as url:
        _, text = await in_thread(ask, url, "POST", "/ltm/memories", json.dumps(memory(PROSE)).encode())
        with watching(monkeypatch) as callbacks:
            status, _ = await in_thread(ask, url, "DELETE", f"/ltm/memories/{json.loads(text)['id']}")
    assert status == 200
    assert callbacks.seconds < LONGEST_SECONDS, callbacks.what


async def test_the_context_of_a_large_message_is_summarised_beside_the_loop(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(engine) as url:
        config = json.dumps({"strategy": "token_threshold", "max_tokens": 1000}).encode()
        await in_thread(ask, url, "PUT", "/stm/s/config", config)
        for content in (PROSE[:200_000], "What was the last one?"):
            await in_thread(ask, url, "POST", "/stm/s/messages", json.dumps(message(content)).encode())
        with watching(monkeypatch) as callbacks:
            status, text = await in_thread(ask, url, "GET", "/stm/s/context")
    assert status == 200
    assert json.loads(text)["messages"][0]["role"] == "summary"
    assert callbacks.seconds < LONGEST_SECONDS, callbacks.what


async def test_a_question_of_twenty_thousand_characters_is_answered(engine: Engine) -> None:
    question = "".join(chr(0x4E00 + number) for number in range(20_000))
    async with listening(engine) as url:
        await in_thread(ask, url, "POST", "/ltm/memories", json.dumps(memory(question[:300])).encode())
        body = json.dumps({"query": question, "user_id": "u"}).encode()
        status, text = await in_thread(ask, url, "POST", "/ltm/memories/search", body)
    assert status == 200, text[:300]
    assert json.loads(text)
