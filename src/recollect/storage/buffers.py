"""Buffers: ordered items in Redis or Valkey, one sorted set per buffer; the only code that talks to Redis."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from recollect import origin
from recollect.errors import Misconfigured, Unavailable
from recollect.storage.sql import Queries, Query

# What the contract of the short-term memory says when there is no Redis.
NOT_INITIALIZED = "Redis not initialized"

_CONNECTIONS = 20

# Redis answers in milliseconds, or it hangs: then a caller is told soon, and is not made to wait twice.
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 4.0
_PING_SECONDS = 1.0

# A connection that was idle while Redis restarted fails once. What is sent twice is done once.
_RETRIES = 1

_ID_CHARACTERS = 36

_SCANNED_AT_ONCE = 1000

log = logging.getLogger(__name__)


class _Lua(Queries, file="buffers.lua"):
    append: Query
    replace: Query


# A text under a UUID, which stands before it in the set: equal texts are different items.
Item = tuple[str, str]


class Buffers:
    """Items by namespace and name, in the order in which they were appended, and one note for each buffer."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis
        self._append = redis.register_script(_Lua.append.text)
        self._replace = redis.register_script(_Lua.replace.text)

    @classmethod
    def open(cls, url: str) -> Self:
        """Connects when it is first used, and again whenever the connection is gone."""
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=_CONNECTIONS,
                timeout=_ANSWER_SECONDS,
                socket_connect_timeout=_CONNECT_SECONDS,
                socket_timeout=_ANSWER_SECONDS,
                retry=Retry(NoBackoff(), _RETRIES, supported_errors=(RedisConnectionError,)),
                decode_responses=True,
            )
        except ValueError:
            # Whose sentence may quote the address, and its password.
            raise Misconfigured(
                "RECOLLECT_REDIS_URL is invalid: it must look like redis://user:password@host:6379/0, "
                "rediss://... for TLS or unix:///path/to/socket"
            ) from None
        return cls(Redis.from_pool(pool))

    async def close(self) -> None:
        """Return every connection."""
        await self._redis.aclose()

    async def ping(self) -> None:
        """Ask Redis something; raises when it does not answer."""
        with _translated():
            async with asyncio.timeout(_PING_SECONDS):
                await self._redis.ping()

    async def append(self, namespace: str, name: str, items: Sequence[Item]) -> None:
        """Add items at the end, next to each other."""
        origin.require_no_limits()
        origin.require("write", namespace)
        with _translated():
            await self._append(keys=[_items(namespace, name)], args=[item_id + text for item_id, text in items])

    async def last(self, namespace: str, name: str, limit: int | None) -> list[Item]:
        """The last items, or all of them, oldest first."""
        origin.require_no_limits()
        origin.require("read", namespace)
        with _translated():
            first = 0 if limit is None else -limit
            found = cast(list[str], await self._redis.zrange(_items(namespace, name), first, -1))
        return [(text[:_ID_CHARACTERS], text[_ID_CHARACTERS:]) for text in found]

    async def replace(
        self, namespace: str, name: str, ids: Sequence[str], item: Item, kept: Sequence[Item] = ()
    ) -> bool:
        """Put one item in the place of the first ones but those kept, if they still are the first; whether it was."""
        origin.require_no_limits()
        origin.require("write", namespace)
        args: list[str | int] = [len(ids), ids[0], ids[-1], *map("".join, (item, *kept))]
        with _translated():
            return bool(await self._replace(keys=[_items(namespace, name)], args=args))

    async def note(self, namespace: str, name: str) -> str | None:
        """What was written about a buffer."""
        origin.require_no_limits()
        origin.require("read", namespace)
        with _translated():
            return cast(str | None, await self._redis.get(_note(namespace, name)))

    async def write_note(self, namespace: str, name: str, text: str) -> None:
        """Write about a buffer, over what was written before."""
        origin.require_no_limits()
        origin.require("write", namespace)
        with _translated():
            await self._redis.set(_note(namespace, name), text)

    async def remove(self, namespace: str, name: str) -> bool:
        """Delete a buffer and its note; False if there was neither. The server frees large ones in the background."""
        origin.require_no_limits()
        origin.require("admin", namespace)
        with _translated():
            return bool(await self._redis.unlink(_items(namespace, name), _note(namespace, name)))

    async def exists(self, namespace: str, name: str) -> bool:
        """Whether there is a buffer of this name, or a note about one."""
        origin.require_no_limits()
        origin.require("read", namespace)
        with _translated():
            return bool(await self._redis.exists(_items(namespace, name), _note(namespace, name)))

    async def names(self, namespace: str) -> set[str]:
        """Every buffer of a namespace. Redis is asked step by step, and serves others in between."""
        origin.require_no_limits()
        origin.require("read", namespace)
        start = _prefix(namespace, "")[:-1]
        with _translated():
            # No character of a namespace has a meaning in a pattern.
            found = [key async for key in self._redis.scan_iter(match=f"{start}*", count=_SCANNED_AT_ONCE)]
        return {key.removeprefix(start).rpartition("}:")[0] for key in found}


def _items(namespace: str, name: str) -> str:
    return f"{_prefix(namespace, name)}:items"


def _note(namespace: str, name: str) -> str:
    return f"{_prefix(namespace, name)}:note"


def _prefix(namespace: str, name: str) -> str:
    """Namespaces hold no slash, so no two of them share a key; braces keep a buffer on one node of a cluster."""
    return f"recollect:{{{namespace}/{name}}}"


@contextmanager
def _translated() -> Iterator[None]:
    """Whatever Redis refuses, the buffer cannot be reached; the log says why."""
    try:
        yield
    except (RedisError, OSError) as problem:
        log.warning("Redis: %s: %s", type(problem).__name__, problem)
        raise Unavailable(NOT_INITIALIZED) from problem
