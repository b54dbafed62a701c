"""One MCP server over one engine: the chosen tools, the resources, and Streamable HTTP."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import SubscriptionBus
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import InputRequiredResult, Resource, ResourceTemplate
from pydantic import AnyUrl
from starlette.routing import BaseRoute

from recollect import __version__
from recollect.doors.mcp import resources, toolsets
from recollect.doors.mcp.caller import Caller, caller_of
from recollect.doors.mcp.tool import bound
from recollect.engine import Engine

PATH = "/mcp"

# The largest call: two texts of 16 MB each, with metadata, some of it escaped.
MAX_BODY_BYTES = 64 * 1024 * 1024

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})

INSTRUCTIONS = (
    "Recollect is long-term memory. Before you answer, recall what is known; when you learn something worth keeping, "
    "store it. What is stored is durable when the call returns, and is found by its words at once and by its meaning "
    "a moment later."
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
        """What we offer never changes while a server runs, so that by default there is nothing to subscribe to."""
        self._engine = engine
        self._memories = resources.RESOURCES if toolsets.COGNITIVE in names else ()
        super().__init__(
            "recollect",
            title="Recollect",
            description="Memory for AI agents",
            instructions=INSTRUCTIONS,
            version=__version__,
            tools=bound(toolsets.definitions(names), self._caller),
            subscriptions=subscriptions,
        )

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
                text = await memory.read(self._caller(context.request_context.request), str(uri), query)
                return [ReadResourceContents(content=text, mime_type=resources.JSON)]
        return await super().read_resource(uri, context)

    def _caller(self, http_request: Any) -> Caller:
        return caller_of(self._engine, http_request)


def quiet_sdk(level: str) -> None:
    """The SDK tells at INFO of every request that ends, which belongs to DEBUG."""
    logging.getLogger("mcp").setLevel("INFO" if level == "DEBUG" else "WARNING")


def http_routes(server: MCPServer[Any], host: str = "127.0.0.1", **session_options: Any) -> list[BaseRoute]:
    """Streamable HTTP at `/mcp`, for an application that runs `server.session_manager` in its lifespan.

    No process keeps anything between requests; options of the SDK for a server that does are for tests. Pages of other
    sites cannot reach it through a browser: a request must be addressed to loopback, or to the host that is bound, by
    its Host and, if it has one, by its Origin.
    """
    hosts = sorted(LOOPBACK | {f"[{host}]" if ":" in host else host})
    addresses = [f"{name}{port}" for name in hosts for port in ("", ":*")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=addresses,
            allowed_origins=[f"{scheme}://{address}" for scheme in ("http", "https") for address in addresses],
        ),
        **({"stateless_http": True} | session_options),
    )
    return list(app.routes)
