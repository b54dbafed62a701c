"""Subscriptions: tells a client that a resource of its namespace has changed, so that it reads it again."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from recollect import origin, tasks
from recollect.doors.caller import Caller
from recollect.doors.changes import HEARTBEAT_SECONDS, while_admitted
from recollect.doors.mcp import errors, resources
from recollect.doors.mcp.resources import MemoryResource
from recollect.doors.mcp.tool import CallerOf
from recollect.errors import Conflict, RecollectError, Unavailable

Context = ServerRequestContext[Any, Any]

RETRY_SECONDS = 1.0


class Subscriptions:
    """Follows the changes of each caller's namespace; a notification says which address to read, never what is new."""

    def __init__(self, memories: Sequence[MemoryResource], caller_of: CallerOf) -> None:
        self._memories = {memory.uri: memory for memory in memories}
        self._caller_of = caller_of
        self._subscribed: set[str] = set()
        self._notifying: tasks.BackgroundTask | None = None

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """`subscriptions/listen`: the answer is a stream, which lasts until the client or the server ends it."""
        caller = self._caller_of(context.request)
        since = await _last(caller)
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        uris = params.notifications.resource_subscriptions or ()

        async def publish() -> None:
            try:
                async for uri in self._updated(caller, since, uris):
                    await bus.publish(ResourceUpdated(uri))
            finally:
                handler.close()

        async with tasks.beside(publish()):
            return await handler(context, params)

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        """`resources/subscribe` of earlier revisions, over stdio: one client, for as long as the process lives."""
        address = params.uri.partition("?")[0]
        if address not in self._memories:
            known = ", ".join(self._memories)
            missing = errors.Refusal(errors.NOT_FOUND, f"Unknown resource {address}: available resources are {known}")
            raise resources.refused(params.uri, address, missing)
        self._subscribed.add(params.uri)
        if self._notifying is None:
            caller = self._caller_of(context.request)
            since = await _last(caller)
            self._notifying = tasks.BackgroundTask("recollect-subscriptions")
            self._notifying.start(self._notify(caller, since, context.session))
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """`resources/unsubscribe`; an address that was not subscribed to is no fault."""
        self._subscribed.discard(params.uri)
        return EmptyResult()

    async def close(self) -> None:
        """The client of stdio has gone."""
        if self._notifying is not None:
            await self._notifying.stop()

    async def _notify(self, caller: Caller, since: int, session: ServerSession) -> None:
        async for uri in self._updated(caller, since, self._subscribed):
            await session.send_resource_updated(uri)

    async def _updated(self, caller: Caller, since: int, uris: Iterable[str]) -> AsyncIterator[str]:
        """Those of some addresses that are to be read again, as changes come, while the caller would be let in again.

        It outlasts a restart of the database.
        """
        by = origin.current()

        async def is_still_admitted() -> bool:
            # Nobody was let in over stdio: the client has started the server.
            return by.reach is None or await caller.engine.connections.is_still_admitted(
                caller.namespace, by.key_id, by.connection_id
            )

        while True:
            pages = caller.engine.feed.follow(caller.namespace, since, HEARTBEAT_SECONDS)
            try:
                async for page in while_admitted(pages, is_still_admitted):
                    since = page.next
                    for uri in self._showing({entry.change.kind for entry in page.entries}, uris):
                        yield uri
                return
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
            except Conflict:
                since = 0  # the namespace was deleted, and begins anew

    def _showing(self, kinds: set[str], uris: Iterable[str]) -> list[str]:
        """Those of some addresses at which items of some kinds are shown."""
        found = []
        for uri in uris:
            memory = self._memories.get(uri.partition("?")[0])
            if memory is not None and (memory.kinds is None or kinds & memory.kinds):
                found.append(uri)
        return found


async def _last(caller: Caller) -> int:
    try:
        return await caller.engine.feed.last(caller.namespace)
    except RecollectError as problem:
        raise MCPError(INTERNAL_ERROR, errors.refusal(problem).details) from problem
