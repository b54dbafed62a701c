"""One log line for each MCP request: its name, outcome and duration, without its content."""

import logging
import time
from collections.abc import Collection
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext

from recollect import logs
from recollect.doors.mcp.spans import METHODS, OTHER, is_error
from recollect.doors.mcp.tool import CallerOf
from recollect.identifiers import uuid7

_log = logging.getLogger("recollect.requests")


class Lines(ServerMiddleware[Any]):
    """Over stdio this line is the only one; over HTTP the gate has written one, and this adds the tool for DEBUG."""

    def __init__(self, tools: Collection[str], caller_of: CallerOf) -> None:
        self._tools = frozenset(tools)
        self._caller_of = caller_of

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """A notification, which has no answer, has no line either."""
        if ctx.request_id is None:
            return await call_next(ctx)
        began, outcome = time.perf_counter(), "failed"
        with logs.handling(logs.request_id() or str(uuid7())):
            try:
                result = await call_next(ctx)
                outcome = "refused" if is_error(result) else "ok"
                return result
            finally:
                seconds = time.perf_counter() - began
                level = logging.INFO if ctx.request is None else logging.DEBUG
                if _log.isEnabledFor(level):
                    # A method or tool that is not ours is the client's own text.
                    method = ctx.method if ctx.method in METHODS else OTHER
                    name = (ctx.params or {}).get("name") if method == "tools/call" else None
                    told = {
                        **({"tool": name} if isinstance(name, str) and name in self._tools else {}),
                        "request_id": logs.request_id(),
                        "namespace": self._caller_of(ctx.request).namespace,
                        "door": "mcp",
                        "ms": round(seconds * 1000, 1),
                    }
                    _log.log(level, "%s %s", method, outcome, extra=told)
