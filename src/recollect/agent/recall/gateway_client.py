"""HTTP client of the memory gateway: three calls, each with one answer or one sanitised error, never retried."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import httpx

from recollect.agent.config import GatewayConfig

Operation = Literal["search", "add", "flush"]
Category = Literal[
    "timeout", "connection", "unauthorized", "http_error", "invalid_json", "invalid_response", "too_large", "stopped"
]

# A hundred results of a few pages each; a server that sends more is not the gateway.
MAX_ANSWER_BYTES = 2 * 1024 * 1024
UNAUTHORIZED = 401
_NOT_JSON = object()

# Recollect's own. Headers, since another gateway may refuse a body with a field that the contract does not have.
FLOOR_HEADER = "X-Recollect-Min-Relevance"
PINNED_HEADER = "X-Recollect-Include-Pinned"


class GatewayError(Exception):
    """A call failed. Says which and how, and holds nothing of the request or of the answer."""

    def __init__(self, operation: Operation, category: Category, status: int | None = None) -> None:
        self.operation = operation
        self.path = f"/memories/{operation}"
        self.category = category
        self.status = status
        answered = "" if status is None else f" (status {status})"
        super().__init__(f"The memory gateway failed: POST {self.path}: {category}{answered}")


class _TooLarge(Exception):
    """The answer was given up after the limit."""


class Answer(NamedTuple):
    """What a search brought, as the gateway sent it: untrusted, and of any shape. Few gateways know pinned memories."""

    results: list[Any]
    pinned: list[Any]


class GatewayClient:
    """Speaks for one user of one gateway. Retrying an add could store a turn twice, so nothing is retried."""

    def __init__(self, config: GatewayConfig, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._config = config
        # A transport of our own takes no proxy from the environment, which would see the key. A connection is used
        # once: one that the gateway closed meanwhile would fail a call that is not retried.
        self._http = httpx.AsyncClient(
            base_url=config.base_url,
            timeout=config.timeout_seconds,
            follow_redirects=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            transport=transport or httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0)),
        )

    async def search(self, conversation_id: str, query: str) -> Answer:
        """What the gateway knows about a query, and what its user has pinned."""
        answer = await self._call(
            "search",
            {
                "conversation_id": conversation_id,
                "query": query,
                "scope": list(self._config.scope),
                "top_k": self._config.top_k,
            },
        )
        results = answer.get("results")
        if not isinstance(results, list):
            raise GatewayError("search", "invalid_response")
        pinned = answer.get("pinned")
        return Answer(results, pinned if isinstance(pinned, list) else [])

    async def add(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Give the gateway the messages of a turn."""
        await self._call("add", {"session_id": session_id, "messages": [dict(message) for message in messages]})

    async def flush(self, session_id: str) -> None:
        """Wait until what was added to a session can be recalled."""
        await self._call("flush", {"session_id": session_id})

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def _call(self, operation: Operation, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Faults are raised outside of `except`: their causes hold the request, and with it the key."""
        category: Category | None = None
        try:
            # httpx limits each wait for the socket; this limits them together, so that a slow drip ends too.
            async with asyncio.timeout(self._config.timeout_seconds):
                status, content = await self._exchange(operation, fields)
        except (TimeoutError, httpx.TimeoutException):
            category = "timeout"
        except _TooLarge:
            category = "too_large"
        except (httpx.HTTPError, httpx.InvalidURL):
            category = "connection"
        if category:
            raise GatewayError(operation, category)
        if not httpx.codes.is_success(status):
            raise GatewayError(operation, "unauthorized" if status == UNAUTHORIZED else "http_error", status)
        answer: Any = _NOT_JSON
        with contextlib.suppress(ValueError, RecursionError):
            # `int` refuses NaN and Infinity, which JSON does not have.
            answer = json.loads(content, parse_constant=int)
        if answer is _NOT_JSON:
            raise GatewayError(operation, "invalid_json")
        if not isinstance(answer, dict):
            raise GatewayError(operation, "invalid_response")
        return answer

    async def _exchange(self, operation: Operation, fields: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and body. A refusal's body is not read, nor a packed one, which could unpack to any size."""
        headers = {"Content-Type": "application/json"}
        if operation == "search":
            floor = self._config.min_relevance
            headers[FLOOR_HEADER] = "default" if floor is None else str(floor)
            headers[PINNED_HEADER] = "true"
        async with self._http.stream(
            "POST",
            f"/memories/{operation}",
            content=self._body(fields),
            headers=headers,
        ) as response:
            if not response.is_success or response.headers.get("Content-Encoding", "identity") != "identity":
                return response.status_code, b""
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise _TooLarge
            return response.status_code, bytes(content)

    def _body(self, fields: Mapping[str, Any]) -> bytes:
        """The request's body, with who asks: the one place where the key is shown."""
        config = self._config
        identity = {
            "user_id": config.user_id,
            "user_key": config.user_key.reveal(),
            "app_id": config.app_id,
            "project_id": config.project_id,
        }
        return json.dumps(identity | dict(fields)).encode("ascii")
