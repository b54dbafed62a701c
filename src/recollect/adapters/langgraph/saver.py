"""RecollectSaver: LangGraph's checkpointer, which keeps the state of threads; one request for each call."""

import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from recollect.adapters.connection import Connection

# Checkpoints that a list fetches at once: each comes with its whole state.
PAGE = 20

# Of a value in metadata, in characters of JSON; longer ones come back, too, but nothing is filtered by them.
MAX_FILTERED = 8_000

Request = tuple[tuple[str, ...], dict[str, Any]]
"""Method, path and ids of a call, and its body."""


class RecollectSaver(BaseCheckpointSaver[str]):
    """LangGraph's checkpointer on the server at `url`, or without one on the memory of this machine; sync and async.

    With `user_id`, the threads that it begins are forgotten with that user.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        connection: Connection | None = None,
        user_id: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._connection = connection or Connection(url, key)
        self._user_id = user_id

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, with the values of the channels that are new in it."""
        self._call(self._put(config, checkpoint, metadata, new_versions))
        return _config(*_place(config), checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The same, without blocking the event loop."""
        await self._acall(self._put(config, checkpoint, metadata, new_versions))
        return _config(*_place(config), checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, before the next checkpoint has it."""
        self._call(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The same, without blocking the event loop."""
        await self._acall(self._put_writes(config, writes, task_id, task_path))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread."""
        found = self._call(_one(config))["checkpoints"]
        return self._tuple(found[0]) if found else None

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The same, without blocking the event loop."""
        found = (await self._acall(_one(config)))["checkpoints"]
        return self._tuple(found[0]) if found else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first, fetched page by page."""
        listing = _Listing(config, filter, before, limit)
        while listing.more:
            for each in listing.received(self._call(listing.request())):
                yield self._tuple(each)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The same, without blocking the event loop."""
        listing = _Listing(config, filter, before, limit)
        while listing.more:
            for each in listing.received(await self._acall(listing.request())):
                yield self._tuple(each)

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self._call(_deleting(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """The same, without blocking the event loop."""
        await self._acall(_deleting(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that some runs made."""
        self._call(_deleting_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """The same, without blocking the event loop."""
        await self._acall(_deleting_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another one."""
        self._call(_copying(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The same, without blocking the event loop."""
        await self._acall(_copying(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest checkpoint of each graph in some threads, or with `delete` none."""
        self._call(_pruning(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """The same, without blocking the event loop."""
        await self._acall(_pruning(thread_ids, strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version after the current one that no other branch of the thread makes, so that both keep their values."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:016}.{secrets.token_hex(8)}"

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, request: Request) -> Any:
        route, body = request
        return self._connection.call(*route, json=body or None)

    async def _acall(self, request: Request) -> Any:
        route, body = request
        return await self._connection.call_async(*route, json=body or None)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Request:
        thread_id, checkpoint_ns = _place(config)
        versions, values = checkpoint["channel_versions"], checkpoint["channel_values"]
        known = get_checkpoint_metadata(config, metadata)
        # Together: what JSON cannot hold comes back, too, and what it can is what lists are filtered by.
        bare = {name: part for name, part in checkpoint.items() if name != "channel_values"}
        new = [channel for channel in new_versions if channel in values and channel in versions]
        return ("PUT", "/checkpoints/{}", thread_id), {
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint["id"],
            "parent_id": get_checkpoint_id(config),
            "user_id": self._user_id,
            "checkpoint": self._packed({"checkpoint": bare, "metadata": known}),
            "versions": {channel: str(version) for channel, version in versions.items()},
            "values": {channel: self._packed(values[channel]) for channel in new},
            "metadata": _plain(known),
        }

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Request:
        thread_id, checkpoint_ns = _place(config)
        # Errors and interrupts have places of their own, and a later one takes the place of an earlier one.
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        numbered = {
            WRITES_IDX_MAP.get(channel, place): (channel, value) for place, (channel, value) in enumerate(writes)
        }
        return ("POST", "/checkpoints/{}/writes", thread_id), {
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": get_checkpoint_id(config),
            "task_id": task_id,
            "task_path": task_path,
            "writes": [
                {"idx": place, "channel": channel, "value": self._packed(value)}
                for place, (channel, value) in numbered.items()
            ],
            "replace": replace,
        }

    def _packed(self, value: Any) -> dict[str, str]:
        kind, body = self.serde.dumps_typed(value)
        return {"type": kind, "body": b64encode(body).decode()}

    def _unpacked(self, packed: Mapping[str, str]) -> Any:
        return self.serde.loads_typed((packed["type"], b64decode(packed["body"])))

    def _tuple(self, stored: Mapping[str, Any]) -> CheckpointTuple:
        place = stored["thread_id"], stored["checkpoint_ns"]
        whole = self._unpacked(stored["checkpoint"])
        values = {channel: self._unpacked(value) for channel, value in stored["values"].items()}
        return CheckpointTuple(
            _config(*place, stored["checkpoint_id"]),
            cast(Checkpoint, {**whole["checkpoint"], "channel_values": values}),
            whole["metadata"],
            None if stored["parent_id"] is None else _config(*place, stored["parent_id"]),
            [(each["task_id"], each["channel"], self._unpacked(each["value"])) for each in stored["writes"]],
        )


class _Listing:
    """The pages of a list, until there are enough."""

    def __init__(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        named = {} if config is None else config["configurable"]
        self._asked = {
            **{name: named.get(name) for name in ("thread_id", "checkpoint_ns", "checkpoint_id")},
            "before": None if before is None else get_checkpoint_id(before),
            "filter": wanted,
        }
        self._left = limit
        self.more = limit is None or limit > 0

    def request(self) -> Request:
        size = PAGE if self._left is None else min(PAGE, self._left)
        return ("POST", "/checkpoints/list"), {**self._asked, "limit": size}

    def received(self, answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        page: Sequence[Mapping[str, Any]] = answer["checkpoints"]
        if self._left is not None:
            self._left -= len(page)
        self.more = len(page) == PAGE and self._left != 0
        if page:
            self._asked["behind"] = {name: page[-1][name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
        return page


def _place(config: RunnableConfig) -> tuple[str, str]:
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns", "")


def _config(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    named = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return {"configurable": named}


def _one(config: RunnableConfig) -> Request:
    thread_id, checkpoint_ns = _place(config)
    asked = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": get_checkpoint_id(config)}
    return ("POST", "/checkpoints/list"), {**asked, "limit": 1}


def _deleting(thread_id: str) -> Request:
    return ("DELETE", "/checkpoints/{}", str(thread_id)), {}


def _deleting_runs(run_ids: Sequence[str]) -> Request:
    return ("POST", "/checkpoints/delete-runs"), {"run_ids": _several(run_ids)}


def _copying(source: str, target: str) -> Request:
    return ("POST", "/checkpoints/{}/copy", str(source)), {"target_thread_id": str(target)}


def _pruning(thread_ids: Sequence[str], strategy: str) -> Request:
    return ("POST", "/checkpoints/prune"), {"thread_ids": _several(thread_ids), "strategy": strategy}


def _several(ids: Sequence[str]) -> list[str]:
    if isinstance(ids, str):
        raise TypeError("pass a list of ids, not one id")
    return list(map(str, ids))


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The part of metadata that lists can be filtered by: short, and JSON that PostgreSQL can hold."""
    plain = {}
    for name, value in metadata.items():
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError):
            continue
        if len(text) <= MAX_FILTERED and "\\u0000" not in text:
            plain[name] = json.loads(text)
    return plain
