"""One MCP server over one engine: the chosen tools, the resources, and Streamable HTTP."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import SubscriptionBus
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    InputRequiredResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from pydantic import AnyUrl
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect import __version__
from recollect.doors import json_steps
from recollect.doors.caller import Caller, caller_of
from recollect.doors.mcp import audited, envelope, errors, lines, resources, spans, toolsets
from recollect.doors.mcp.route import PATH
from recollect.doors.mcp.stdio import AnsweredLines
from recollect.doors.mcp.subscriptions import Subscriptions
from recollect.doors.mcp.tool import bound
from recollect.engine import Engine
from recollect.errors import Invalid, NotFound

# Of one message: more than any tool takes, and the SDK decodes them in some ten milliseconds.
MAX_VALUES = 100_000

# The gate counts the bytes of a body.
NO_LIMIT = sys.maxsize

INSTRUCTIONS = (
    "Recollect is long-term memory. Before you answer, recall what is known. When you learn something worth keeping, "
    "store it. A stored text is durable when the call returns; keyword search finds it at once, semantic search a "
    "moment later."
)


class RecollectServer(MCPServer[Any]):
    """The SDK's server with our tools, and with resources whose addresses carry parameters."""

    def __init__(
        self,
        engine: Engine,
        names: Sequence[str] = toolsets.ALL,
        *,
        subscriptions: SubscriptionBus | Literal[False] | None = False,
    ) -> None:
        """By default, clients subscribe to changes of memory; what we offer never changes while a server runs."""
        self._engine = engine
        self._memories = (
            *(resources.RESOURCES if toolsets.COGNITIVE in names else ()),
            *((resources.KNOWLEDGE_GRAPH,) if toolsets.GRAPH_REFERENCE in names else ()),
            resources.LINEAGE,
            resources.CHANGES,
        )
        self._subscriptions_to_memory = Subscriptions(self._memories, self._caller)
        super().__init__(
            "recollect",
            title="Recollect",
            description="Memory for AI agents",
            instructions=INSTRUCTIONS,
            version=__version__,
            tools=bound(toolsets.definitions(names), self._caller),
            subscriptions=subscriptions,
        )
        if subscriptions is False:
            self._lowlevel_server.add_request_handler(
                "subscriptions/listen", SubscriptionsListenRequestParams, self._subscriptions_to_memory.listen
            )
        tools = [tool.function.__name__ for tool in toolsets.definitions(names)]
        addresses = [memory.uri for memory in self._memories]
        self.middleware[:0] = [
            spans.Spans(tools),
            lines.Lines(tools, self._caller),
            audited.Audited(tools, addresses, self._caller),
        ]

    async def list_resources(self) -> list[Resource]:
        """Each resource as an address without parameters."""
        return [*await super().list_resources(), *(memory.plain() for memory in self._memories)]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Each resource that takes parameters, with all of them."""
        templates = [memory.template() for memory in self._memories if memory.parameters.model_fields]
        return [*await super().list_resource_templates(), *templates]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Ours are read here: the SDK's templates drop parameters they do not know and leave a `+` in a text."""
        address, _, query = str(uri).partition("?")
        for memory in self._memories:
            if memory.uri == address and context is not None:
                return [await memory.read(self._caller(context.request_context.request), str(uri), query)]
        if address.startswith(resources.SCHEME):
            known = ", ".join(memory.uri for memory in self._memories)
            missing = NotFound(f"Unknown resource {address}: available resources are {known}")
            raise resources.refused(str(uri), address, errors.refusal(missing)) from missing
        return await super().read_resource(uri, context)

    async def run_stdio_async(self) -> None:
        """Serve standard input and output until the client closes its end."""
        async with stdio_server() as (lines, answers):
            messages: Any = AnsweredLines(lines, answers)
            server, memory = self._lowlevel_server, self._subscriptions_to_memory
            # Over HTTP, clients of earlier revisions have no session in which they could be told.
            server.add_request_handler("resources/subscribe", SubscribeRequestParams, memory.subscribe)
            server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, memory.unsubscribe)
            try:
                await server.run(messages, answers, server.create_initialization_options())
            finally:
                await memory.close()

    def _caller(self, http_request: Any) -> Caller:
        return caller_of(self._engine, http_request)


EVENTS = "text/event-stream"
NOT_BY_HAND = (
    "This URL is for MCP clients: configure it in one, or send a POST with the header "
    f"Accept: application/json, {EVENTS}"
)


def http_routes(server: MCPServer[Any], **session_options: Any) -> list[BaseRoute]:
    """Streamable HTTP at `/mcp`, for an application that runs `server.session_manager` in its lifespan.

    No process keeps anything between requests; options of the SDK for a server that does are for tests. Who may come
    in, from where and with how much is decided for all doors at once, by the gate of the application.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=NO_LIMIT,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        **({"stateless_http": True} | session_options),
    )
    for route in app.routes:
        if isinstance(route, Route):
            route.app = _for_clients(route.app)
    return list(app.routes)


def _for_clients(app: ASGIApp) -> ASGIApp:
    """Tell people who open the address by hand what it is: to them, the stream of events would only seem to hang.

    Messages are looked through first: the SDK decodes each at once, and a server that decodes millions of values
    answers no one meanwhile.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and EVENTS not in Headers(scope=scope).get("accept", ""):
            await JSONResponse({"detail": NOT_BY_HAND}, 406)(scope, receive, send)
        elif scope["method"] == "POST":
            try:
                await app(scope, await _looked_through(scope, receive), send)
            except Invalid as refusal:
                error = ErrorData(code=INVALID_REQUEST, message=str(refusal)).model_dump(exclude_none=True)
                await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


async def _looked_through(scope: Scope, receive: Receive) -> Receive:
    """What brings the same message again, if it is one that has not too many values."""
    body = await Request(scope, receive).body()
    try:
        message = await json_steps.read(body, MAX_VALUES)
    except Invalid:
        raise
    except (ValueError, RecursionError):
        pass  # no JSON: the SDK says so in the words of its protocol
    else:
        envelope.check(message)
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Message:
        return next(parts, None) or await receive()

    return again
