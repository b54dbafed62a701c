"""A local server that speaks the wire formats of OpenAI and Anthropic as their API documentation shows them.

    with provider_server() as provider:
        provider.script(Failure(429, retry_after=2), Reply("Hello."))
        settings = provider.configure(settings)

Each request takes the next step of the script; when there is none, `provider.answer` says what to reply. Embeddings are
made of the words of a text, so that texts that share words are near each other.
"""

import asyncio
import base64
import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.inference import providers
from recollect.inference.requests.limits import Limits
from recollect.settings import Settings

DIMENSIONS = 1536
KEY = "sk-test-only-0123456789"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that succeeds. `stop` is OpenAI's reason to finish; Anthropic's is derived from it."""

    text: str
    input_tokens: int = 20
    output_tokens: int = 10
    stop: str = "stop"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in the documented shape."""

    status: int
    retry_after: float | str | None = None
    message: str = "The server had an error while processing your request."
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Truncated:
    """An answer whose connection is closed half-way."""

    text: str = "This answer never arrives in full."


@dataclass(frozen=True, slots=True)
class Raw:
    """Any body at all with status 200."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer until the test is over."""


Step = Reply | Failure | Truncated | Raw | Silence


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ProviderServer:
    """What a test tells the server, and what it heard."""

    url: str
    key: str | None = KEY
    """None lets everybody in, as servers of one's own do."""
    dimensions: int = DIMENSIONS
    can_shorten: bool = True
    """Whether it makes as many dimensions as a request asks for."""
    answer: Callable[[Asked], Step] = lambda asked: Reply("An answer.")
    requests: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    _script: deque[Step] = field(default_factory=deque)

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def script(self, *steps: Step) -> None:
        """What the next requests get, one step each."""
        self._script.extend(steps)

    def configure(self, settings: Settings, **changes: Any) -> Settings:
        """Settings under which both providers are this server."""
        return Settings(**settings.model_dump() | self.settings() | changes)

    def settings(self) -> dict[str, Any]:
        return {
            "openai_api_key": self.key,
            "openai_base_url": self.openai_url,
            "anthropic_api_key": self.key,
            "anthropic_base_url": self.anthropic_url,
        }

    def environment(self) -> dict[str, str]:
        """The same for a child process."""
        return {f"RECOLLECT_{name.upper()}": value for name, value in self.settings().items()}

    def next_step(self, asked: Asked) -> Step:
        self.requests.append(asked)
        try:
            return self._script.popleft()
        except IndexError:
            return self.answer(asked)


class QuickClock:
    """Time that passes only when someone waits for it: nothing sleeps, and what was waited for can be asked."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)
        self.time += seconds


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing in this process wait for a provider: the database hands out turns by a clock that is not quick."""
    monkeypatch.setattr(providers, "CLOCK", QuickClock())
    monkeypatch.setattr(providers, "EMBEDDINGS", Limits(per_second=1000, at_once=30))


@contextmanager
def provider_server() -> Iterator[ProviderServer]:
    """A running server, in threads of its own, so that it answers whatever the test's event loop does."""
    http = _Server(("127.0.0.1", 0), _Handler)
    provider = ProviderServer(f"http://127.0.0.1:{http.server_address[1]}")
    http.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: clients are killed, or give up, and that is what a test wants to see."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def provider(self) -> ProviderServer:
        provider: ProviderServer = self.server.provider  # type: ignore[attr-defined]
        return provider

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the default writes to standard error."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, body)
        speaks = _ANTHROPIC if self.path == "/v1/messages" else _OPENAI
        if self.path not in ("/v1/messages", "/v1/chat/completions", "/v1/embeddings"):
            self._send(404, speaks.error(Failure(404, message=f"Invalid URL (POST {self.path})")))
        elif not self._is_authorised(headers):
            self._send(401, speaks.error(Failure(401, message=speaks.refusal(headers), code="invalid_api_key")))
        else:
            self._take(asked, self.provider.next_step(asked), speaks)

    def _is_authorised(self, headers: dict[str, str]) -> bool:
        if self.provider.key is None:
            return True
        return self.provider.key in (headers.get("authorization", "").removeprefix("Bearer "), headers.get("x-api-key"))

    def _take(self, asked: Asked, step: Step, speaks: "_Speaks") -> None:
        if isinstance(step, Silence):
            self.provider.closing.wait()
            self.close_connection = True
        elif isinstance(step, Failure):
            self._send(step.status, speaks.error(step), retry_after=step.retry_after)
        elif isinstance(step, Raw):
            self._send(200, step.body, content_type=step.content_type)
        elif asked.body.get("stream"):
            self._stream(asked, step, speaks)
        else:
            reply = Reply(step.text) if isinstance(step, Truncated) else step
            embeds = asked.path == "/v1/embeddings"
            size = (self.provider.can_shorten and asked.body.get("dimensions")) or self.provider.dimensions
            answer = embeddings(asked.body, size) if embeds else speaks.reply(asked.body, reply)
            self._send(200, answer, cut=isinstance(step, Truncated))

    def _send(
        self,
        status: int,
        body: Any,
        *,
        content_type: str = "application/json",
        retry_after: float | str | None = None,
        cut: bool = False,
    ) -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(content)))
        if retry_after is not None:
            self.send_header("retry-after", str(retry_after))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = self.close_connection or cut

    def _stream(self, asked: Asked, step: Reply | Truncated, speaks: "_Speaks") -> None:
        cut = isinstance(step, Truncated)
        events = speaks.events(asked.body, Reply(step.text) if isinstance(step, Truncated) else step)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events[: len(events) // 2] if cut else events:
            content = event.encode()
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        if cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


class _Speaks:
    """One provider's formats."""

    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        raise NotImplementedError

    def events(self, body: dict[str, Any], reply: Reply) -> list[str]:
        raise NotImplementedError

    def error(self, failure: Failure) -> dict[str, Any]:
        raise NotImplementedError

    def refusal(self, headers: dict[str, str]) -> str:
        raise NotImplementedError


class _OpenAi(_Speaks):
    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
        return {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 1741569952,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.stop}],
            "usage": _openai_usage(reply),
            "service_tier": "default",
        }

    def events(self, body: dict[str, Any], reply: Reply) -> list[str]:
        common = {
            "id": "chatcmpl-test",
            "object": "chat.completion.chunk",
            "created": 1741569952,
            "model": body["model"],
        }
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(reply.text)]
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        chunks = [common | {"choices": choice} for choice in choices]
        chunks.append(common | {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.stop}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append(common | {"choices": [], "usage": _openai_usage(reply)})
        return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]

    def error(self, failure: Failure) -> dict[str, Any]:
        kinds = {429: "requests", 500: "server_error", 503: "server_error"}
        kind = kinds.get(failure.status, "invalid_request_error")
        return {"error": {"message": failure.message, "type": kind, "param": None, "code": failure.code}}

    def refusal(self, headers: dict[str, str]) -> str:
        return f"Incorrect API key provided: {headers.get('authorization', '').removeprefix('Bearer ')}."


class _Anthropic(_Speaks):
    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        return {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": reply.text}],
            "stop_reason": _anthropic_stop(reply),
            "stop_sequence": None,
            "usage": {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens},
        }

    def events(self, body: dict[str, Any], reply: Reply) -> list[str]:
        opened = self.reply(body, reply) | {"content": [], "stop_reason": None}
        opened["usage"] = {"input_tokens": reply.input_tokens, "output_tokens": 1}
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in _pieces(reply.text)
        ]
        stop = {"stop_reason": _anthropic_stop(reply), "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": opened},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": reply.output_tokens}},
            {"type": "message_stop"},
        ]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]

    def error(self, failure: Failure) -> dict[str, Any]:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = kinds.get(failure.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": failure.message}, "request_id": "req_test"}

    def refusal(self, headers: dict[str, str]) -> str:
        return f"invalid x-api-key {headers.get('x-api-key', '')}"


_OPENAI = _OpenAi()
_ANTHROPIC = _Anthropic()


def _openai_usage(reply: Reply) -> dict[str, int]:
    total = reply.input_tokens + reply.output_tokens
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": total,
    }


def _anthropic_stop(reply: Reply) -> str:
    return {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[reply.stop]


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text) or [text]


def embeddings(body: dict[str, Any], dimensions: int = DIMENSIONS) -> dict[str, Any]:
    """The answer to a request for embeddings, in the encoding that it asks for."""
    texts: Sequence[str] = [body["input"]] if isinstance(body["input"], str) else body["input"]
    as_base64 = body.get("encoding_format") == "base64"
    entries = []
    for index, text in enumerate(texts):
        # Servers that are only compatible may send vectors of any length.
        vector = np.float32(3) * embedding(text, dimensions)
        value = base64.b64encode(vector.tobytes()).decode() if as_base64 else vector.tolist()
        entries.append({"object": "embedding", "index": index, "embedding": value})
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": entries, "model": body["model"], "usage": usage}


def embedding(text: str, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """The sum of directions of a text's words, of length 1."""
    words = re.findall(r"\w+", text.lower()) or [text]
    total = np.sum([_direction(word, dimensions) for word in words], axis=0)
    vector: NDArray[np.float32] = (total / np.linalg.norm(total)).astype(np.float32)
    return vector


@cache
def _direction(word: str, dimensions: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(dimensions)
