"""One span for each MCP request. The SDK's own quote error texts and whatever name a client sends, and go nowhere."""

from collections.abc import Collection
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.types import CallToolResult

from recollect import telemetry

METHODS = frozenset(
    {
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "subscriptions/listen",
        "logging/setLevel",
    }
)
OTHER = "_OTHER"


class Spans(ServerMiddleware[Any]):
    """Knows the names of our tools; of any other it says nothing."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = frozenset(tools)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        method = ctx.method if ctx.method in METHODS else OTHER
        name = (ctx.params or {}).get("name") if method == "tools/call" else None
        with telemetry.mcp_request(
            method, name if isinstance(name, str) and name in self._tools else None, ctx.meta
        ) as refused:
            result = await call_next(ctx)
            if is_error(result):
                refused()
            return result


def is_error(result: HandlerResult) -> bool:
    """The SDK hands on a model, or what it will write."""
    if isinstance(result, CallToolResult):
        return bool(result.is_error)
    return isinstance(result, dict) and result.get("isError") is True
