"""Audited: records each tool call and each resource read in the audit log before the answer is sent."""

from collections.abc import Collection
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext

from recollect import logs, origin
from recollect.doors.mcp.spans import OTHER, is_error
from recollect.doors.mcp.tool import CallerOf
from recollect.identifiers import uuid7
from recollect.memory.accounts.audit import Outcome


class Audited(ServerMiddleware[Any]):
    """Records only names of our tools and resources: any other name is text that the client chose."""

    def __init__(self, tools: Collection[str], resources: Collection[str], caller_of: CallerOf) -> None:
        self._known = {"tools/call": frozenset(tools), "resources/read": frozenset(resources)}
        self._caller_of = caller_of

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        known = self._known.get(ctx.method)
        if known is None:
            return await call_next(ctx)
        caller, params = self._caller_of(ctx.request), ctx.params or {}
        named = str(params.get("name" if ctx.method == "tools/call" else "uri")).partition("?")[0]
        action = named if named in known else OTHER
        audit = caller.engine.audit
        if not audit.is_on:
            return await call_next(ctx)
        with logs.handling(logs.request_id() or str(uuid7())), origin.touching() as touched:
            try:
                result = await call_next(ctx)
            except BaseException as problem:
                await audit.record_failed(caller.namespace, action, problem, touched)
                raise
            outcome: Outcome = "done"
            if is_error(result):
                outcome = "failed" if touched.has_failed else "refused"
            await audit.record(caller.namespace, action, outcome, touched)
            return result
