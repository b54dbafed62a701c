"""LlamaIndex: chat histories as sessions, and a memory block that recalls from everything stored through any door."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from recollect.adapters.connection import Connection
from recollect.adapters.session_log import FORMAT, PAGE, payload_of, sessions, storable
from recollect.checks import MAX_QUESTION_CHARACTERS, has_words
from recollect.errors import NotFound
from recollect.settings import Settings

FORMAT_NAME = "llama_index"

# In the metadata of a session: the last message of the archive. In that of a message: that it belongs there anyhow.
ARCHIVED_TO = "llama_index_archived_to"
STATUS = "llama_index_status"


class RecollectChatStore(BaseChatStore):
    """Each key is a session, which every other door reads under the same id; messages come back as they were."""

    user_id: str | None = Field(default=None, description="Whose sessions new ones are, and the only ones listed")

    _connection: Connection = PrivateAttr()

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(user_id=user_id)
        self._connection = Connection(url, key, namespace=namespace, settings=settings)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex tells components apart."""
        return "RecollectChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace what a key has: the old messages are deleted, then the new ones are added."""
        self._connection.call("DELETE", "/sessions/{}/messages", key)
        if messages:
            self._add(key, messages)

    def get_messages(self, key: str) -> list[ChatMessage]:
        """All messages of a key, oldest first."""
        return list(map(_read, self._stored(key)))

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Append a message; with an index, the history is written anew with the message in that place."""
        if idx is None:
            self._add(key, [message])
        else:
            messages = self.get_messages(key)
            messages.insert(idx, message)
            self.set_messages(key, messages)

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete the session of a key for good; returns what it had, None if there was no such key."""
        messages = self.get_messages(key)
        deleted = self._connection.call("DELETE", "/sessions/{}", key)["deleted"]
        return messages if deleted else None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message in a place for good; None if there is none."""
        stored = list(self._stored(key))
        if not -len(stored) <= idx < len(stored):
            return None
        answer = self._connection.call("DELETE", "/sessions/{}/messages/{}", key, stored[idx]["id"])
        return _read(answer["message"])

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message for good; None if there is none."""
        message = self._connection.call("DELETE", "/sessions/{}/messages/last", key)["message"]
        return None if message is None else _read(message)

    def get_keys(self) -> list[str]:
        """The keys of all sessions, the last active at the end."""
        keys: list[str] = []
        cursor: str | None = None
        while True:
            page = self._connection.call(
                "GET", "/sessions", params={"user_id": self.user_id, "limit": PAGE, "cursor": cursor}
            )
            keys += [session["id"] for session in page["sessions"]]
            if (cursor := page["next"]) is None:
                return keys[::-1]

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._connection.close()

    def _add(self, key: str, messages: Sequence[ChatMessage]) -> None:
        body = {"messages": list(map(_written, messages)), "user_id": self.user_id}
        self._connection.call("POST", "/sessions/{}/messages", key, json=body)

    def _stored(self, key: str) -> Iterator[dict[str, Any]]:
        after: str | None = None
        while True:
            answer = self._connection.call("GET", "/sessions/{}/messages", key, params={"limit": PAGE, "after": after})
            yield from answer["messages"]
            if len(answer["messages"]) < PAGE:
                return
            after = answer["messages"][-1]["id"]


class RecollectMemoryStore(AsyncDBChatStore):
    """The history of `Memory`: each key is a session, and what leaves the short-term memory stays in it, archived."""

    user_id: str | None = Field(default=None, description="Whose sessions new ones are, and the only ones listed")

    _connection: Connection = PrivateAttr()

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        user_id: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(user_id=user_id)
        self._connection = Connection(url, key, namespace=namespace, settings=settings)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex tells components apart."""
        return "RecollectMemoryStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Messages of a key, oldest first: those of a status, or all."""
        first = offset or 0
        stored = await self._stored(key, status)
        return list(map(_read, stored[first : None if limit is None else first + limit]))

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages a key has."""
        return len(await self._stored(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Append a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages, all or none."""
        written = list(map(_written, messages))
        for message in written if status == MessageStatus.ARCHIVED else ():
            message["metadata"][STATUS] = status.value
        if written:
            body = {"messages": written, "user_id": self.user_id}
            await self._connection.call_async("POST", "/sessions/{}/messages", key, json=body)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace the messages of a status: the old ones are deleted, then the new ones are added."""
        await self.delete_messages(key, status)
        await self.add_messages(key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the active message in a place for good; None if there is none."""
        stored = await self._stored(key, MessageStatus.ACTIVE)
        if not -len(stored) <= idx < len(stored):
            return None
        await self._delete(key, [stored[idx]])
        return _read(stored[idx])

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a status for good; without one, the session."""
        if status is None:
            await self._connection.call_async("DELETE", "/sessions/{}", key)
        else:
            await self._delete(key, await self._stored(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the first active messages for good, and return them."""
        oldest = (await self._stored(key, MessageStatus.ACTIVE))[:n]
        await self._delete(key, oldest)
        return list(map(_read, oldest))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the first active messages, and return them; every door finds them as before."""
        oldest = (await self._stored(key, MessageStatus.ACTIVE))[:n]
        if oldest:
            change = {"metadata": {ARCHIVED_TO: oldest[-1]["id"]}}
            await self._connection.call_async("PATCH", "/sessions/{}", key, json=change)
        return list(map(_read, oldest))

    async def get_keys(self) -> list[str]:
        """The keys of all sessions, the last active at the end."""
        return [session["id"] async for session in sessions(self._connection, user_id=self.user_id)][::-1]

    def close(self) -> None:
        """Let go of the server or the database; the next call opens it again."""
        self._connection.close()

    async def _stored(self, key: str, status: MessageStatus | None) -> list[dict[str, Any]]:
        archived_to = await self._archived_to(key)
        if status == MessageStatus.ACTIVE:
            return [message for message in await self._behind(key, archived_to) if not _is_archived(message)]
        stored = await self._behind(key, None)
        if status is None:
            return stored
        archived = 1 + next((place for place, message in enumerate(stored) if message["id"] == archived_to), -1)
        return stored[:archived] + [message for message in stored[archived:] if _is_archived(message)]

    async def _archived_to(self, key: str) -> str | None:
        """The last message of the archive; once that is deleted, so are those before it."""
        try:
            session = await self._connection.call_async("GET", "/sessions/{}", key)
            last: str | None = (session["metadata"] or {}).get(ARCHIVED_TO)
            await self._connection.call_async("GET", "/sessions/{}/messages", key, params={"limit": 1, "after": last})
        except NotFound:
            return None
        return last

    async def _behind(self, key: str, message: str | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            params = {"limit": PAGE, "after": found[-1]["id"] if found else message}
            answer = await self._connection.call_async("GET", "/sessions/{}/messages", key, params=params)
            found += answer["messages"]
            if len(answer["messages"]) < PAGE:
                return found

    async def _delete(self, key: str, messages: Sequence[dict[str, Any]]) -> None:
        for message in messages:
            await self._connection.call_async("DELETE", "/sessions/{}/messages/{}", key, message["id"])


class RecollectMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of `Memory`: keeps what leaves the short-term memory, recalls what bears on the last message.

    It recalls from all that is stored of the user, whichever door it came through, and nothing if nothing is relevant.
    """

    name: str = Field(default="Recollect", description="The name of the memory block.")
    user_id: str | None = Field(default=None, description="Whose memory it is; everybody's if omitted")
    top_k: int = Field(default=8, description="Maximum number of results")

    _connection: Connection = PrivateAttr()

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        namespace: str | None = None,
        settings: Settings | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._connection = Connection(url, key, namespace=namespace, settings=settings)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = next((message.content for message in reversed(messages or []) if message.content), None)
        if asked is None or not has_words(asked):
            return ""
        # A chat store of ours has the question as well, and it is no answer to itself.
        body = {
            "query": asked[:MAX_QUESTION_CHARACTERS],
            "user_id": self.user_id,
            "top_k": self.top_k + 1,
            "min_relevance": "default",
        }
        found = await self._connection.call_async("POST", "/recall", json=body)
        others = [memory for memory in found["memories"] if memory["text"].strip() != asked.strip()]
        lines = [] if found["degraded"] is None else [f"(Searched by keywords only: {found['degraded']})"]
        return "\n".join(lines + [_line(memory) for memory in others[: self.top_k]])

    async def _aput(self, messages: list[ChatMessage]) -> None:
        of_session: dict[str, list[dict[str, Any]]] = {}
        for message in messages:
            session = message.additional_kwargs.pop("session_id", None) or f"llama-index:{self.user_id or self.name}"
            of_session.setdefault(session, []).append(_written(message))
        for session, written in of_session.items():
            body = {"messages": written, "user_id": self.user_id}
            await self._connection.call_async("POST", "/sessions/{}/messages", session, json=body)


def _written(message: ChatMessage) -> dict[str, Any]:
    """What was said is searched; the payload is the message itself, as a text, which may hold NUL."""
    return {
        "role": message.role.value,
        "text": storable(message.content or "") or None,
        "payload": message.model_dump_json(),
        "metadata": {FORMAT: FORMAT_NAME},
    }


def _read(stored: dict[str, Any]) -> ChatMessage:
    """What was said through another door is a message without a payload."""
    if (payload := payload_of(stored, FORMAT_NAME)) is not None:
        return ChatMessage.model_validate(json.loads(payload))
    known = {role.value for role in MessageRole}
    return ChatMessage(role=stored["role"] if stored["role"] in known else "user", content=stored["text"])


def _is_archived(message: dict[str, Any]) -> bool:
    return (message["metadata"] or {}).get(STATUS) == MessageStatus.ARCHIVED.value


def _line(memory: dict[str, Any]) -> str:
    said = datetime.fromisoformat(memory["at"]).date()
    speaker = f"{memory['speaker']}: " if memory.get("speaker") else ""
    return f"[{said}] {speaker}{memory['text']}"
